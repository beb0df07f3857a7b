package events

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// headerNoReply of a stored result says that the event has succeeded, and that its reply was not kept.
const headerNoReply = "Result-No-Reply"

// AllResults is the filter of the stream of results.
func (s Subjects) AllResults() string { return string(s) + ".result.>" }

// ResultOwner is the filter for the results of an owner.
func (s Subjects) ResultOwner(owner string) string { return string(s) + ".result." + owner + ".>" }

// Result is where the result of e is stored if its worker is idempotent:
// <prefix>.result.<owner>.<worker>.<kind>.<hash>. Two events have the same subject if they have the same owner, worker,
// kind and id from the publisher. An event without such an id has a subject of its own.
func (s Subjects) Result(e *Event) string {
	id := "id " + e.ID
	if !hasID(e.Header) {
		id = "seq " + e.ID + " " + strconv.FormatInt(e.Stored.UnixNano(), 10)
	}
	sum := sha256.Sum256([]byte(id))
	return strings.Join([]string{string(s), "result", e.Owner, e.Worker, e.Kind.String(), hex.EncodeToString(sum[:16])},
		".")
}

// hasID reports whether the publisher gave the event an id.
func hasID(h Header) bool {
	for name, values := range h {
		if len(values) > 0 && values[0] != "" && (strings.EqualFold(name, HeaderEventID) ||
			strings.EqualFold(name, HeaderMsgID)) {
			return true
		}
	}
	return false
}

// EncodeResult makes the headers of the stored result of an event with the reply r. The message body is r.Body. A nil r
// means that the reply is not kept.
func EncodeResult(r *Reply) Header {
	if r == nil {
		return Header{headerNoReply: {"true"}}
	}
	return r.Encode()
}

// DecodeResult makes the reply to e from a stored result. e does not run; attempt is the number that its run would
// have.
func DecodeResult(e *Event, attempt int, h Header, body []byte) *Reply {
	if h.Get(headerNoReply) == "" {
		if r, err := DecodeReply(h, body); err == nil {
			r.EventID = e.ID
			return r
		}
	}
	return FailureReply(e, attempt, Fail(ReasonTooLarge, "the event has succeeded before, and its reply was too large to be kept"))
}
