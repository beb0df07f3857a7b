package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// HeaderReplay on an event says which replay of which dead letter it is, so that a replay that was published twice runs
// once: ID.N.NONCE, where ID is DeadLetter.Identity, N the replay's number and NONCE one of each publish.
const HeaderReplay = "Dead-Replay"

// HeaderDeadOf on an event says that it tells of a dead letter, that of this identity. Of its own dead letter nobody is told.
const HeaderDeadOf = "Dead-Of"

// Identity tells one dead letter from every other, 32 hex digits. It stays when the letter is edited and its number changes. A letter
// that was imported has a new one: who brings it back wants it to run, even if it was replayed before.
func (d *DeadLetter) Identity() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", d.Stream, d.StreamSeq, formatTime(d.At), formatMaybe(d.Imported)))
	return hex.EncodeToString(sum[:16])
}

// ReplayMark is the value of HeaderReplay for the next replay of d. nonce is a token of letters and digits, new for each publish.
func (d *DeadLetter) ReplayMark(nonce string) string { return d.ReplayID() + "." + nonce }

// ReplayID names the next replay of d: the same for each try of it.
func (d *DeadLetter) ReplayID() string { return d.Identity() + "." + strconv.Itoa(d.Replays+1) }

// ParseReplayMark reads HeaderReplay: the id of the replay and the nonce. Anything else is not ok, as a publisher may write what it likes.
func ParseReplayMark(value string) (id, nonce string, ok bool) {
	identity, number, nonce, ok := cutTwo(value)
	if !ok || len(identity) != 32 || len(number) > 7 || !ValidName(nonce) {
		return "", "", false
	}
	if _, err := hex.DecodeString(identity); err != nil {
		return "", "", false
	}
	if n, err := strconv.Atoi(number); err != nil || n < 1 || strconv.Itoa(n) != number {
		return "", "", false
	}
	return identity + "." + number, nonce, true
}

func cutTwo(s string) (a, b, c string, ok bool) {
	a, rest, ok1 := strings.Cut(s, ".")
	b, c, ok2 := strings.Cut(rest, ".")
	return a, b, c, ok1 && ok2
}

// Target says which worker is to run something: the zero Target changes nothing.
type Target struct {
	Worker  string // "" = the same
	Version string // "" = the active one
}

// ParseTo reads "worker", "worker@version" or "@version".
func ParseTo(s string) (Target, error) {
	worker, version, pinned := strings.Cut(s, "@")
	t := Target{worker, version}
	if worker != "" {
		if err := CheckName("worker", worker); err != nil {
			return Target{}, err
		}
	}
	if pinned && !validVersion(version) || s == "" {
		return Target{}, fmt.Errorf("%q: it is WORKER, WORKER@VERSION or @VERSION, with a version like 12-0123456789ab or 12", s)
	}
	return t, nil
}

func validVersion(s string) bool {
	number, hash, long := strings.Cut(s, "-")
	if n, err := strconv.Atoi(number); err != nil || n < 1 {
		return false
	}
	_, err := hex.DecodeString(hash)
	return !long || err == nil && len(hash) == 12
}

// String is what ParseTo reads.
func (t Target) String() string {
	if t.Version == "" {
		return t.Worker
	}
	return t.Worker + "@" + t.Version
}

// Replay makes the event message that runs d again: the subject to publish to and its headers; the body is DeadLetter.Body. It goes to
// the worker it was for, in the version it asked for, unless to says otherwise. The caller sets a message id of its own. The
// deadline and the delay are left out: they have passed, or soon will, and somebody wants it to run.
func (d *DeadLetter) Replay(s Subjects, to Target) (subject string, h Header, err error) {
	kind, err := ParseKind(d.Kind)
	if err == nil {
		err = CheckName("owner", d.Owner)
	}
	worker := d.Worker
	if to.Worker != "" {
		worker = to.Worker
	}
	if err == nil {
		err = CheckName("worker", worker)
	}
	if err != nil {
		return "", nil, fmt.Errorf("dead letter %d cannot be replayed: %w", d.Seq, err)
	}
	h = make(Header, len(d.Header)+4)
	for name, values := range d.Header {
		if !serverHonoured(name) && !oneOfFold(name, HeaderReplays, HeaderReplay, HeaderDeadline, HeaderEventID, HeaderDeliverAt, HeaderDeliverAfter) &&
			(to == Target{} || !strings.EqualFold(name, HeaderWorkerVersion)) {
			h[name] = values
		}
	}
	if to.Version != "" {
		h.Set(HeaderWorkerVersion, to.Version)
	}
	if d.EventID != "" {
		h.Set(HeaderEventID, d.EventID) // was perhaps the message id, or the sequence
	}
	h.Set(HeaderReplays, strconv.Itoa(d.Replays+1))
	return s.Event(kind, d.Owner, worker), h, nil
}

func oneOfFold(name string, names ...string) bool {
	for _, n := range names {
		if strings.EqualFold(name, n) {
			return true
		}
	}
	return false
}

// Replays is how often the event was a dead letter and was replayed, as its publisher says: 0 for nearly all.
func (e *Event) Replays() int { return replays(e.Header) }
