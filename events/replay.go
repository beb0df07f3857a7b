package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// HeaderReplay of an event says which replay of which dead letter it is, so that a replay that was published twice runs
// once. Its value is ID.N.NONCE: DeadLetter.Identity, the number of the replay, and a token that is new for each
// publish.
const HeaderReplay = "Dead-Replay"

// HeaderDeadOf of an event says that a hook made it for the dead letter of this identity. If this event fails too, no
// hook gets its dead letter.
const HeaderDeadOf = "Dead-Of"

// Identity is unique to a dead letter: 32 hex digits. It stays the same when the letter is edited and its number
// changes. An imported letter has a new one, so that it can run although it was replayed before.
func (d *DeadLetter) Identity() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s\x00%s", d.Stream, d.StreamSeq, formatTime(d.At),
		formatMaybe(d.Imported)))
	return hex.EncodeToString(sum[:16])
}

// ReplayMark is the value of HeaderReplay for the next replay of d. nonce is a token of letters and digits that is new
// for each publish.
func (d *DeadLetter) ReplayMark(nonce string) string { return d.ReplayID() + "." + nonce }

// ReplayID names the next replay of d. It is the same for each try.
func (d *DeadLetter) ReplayID() string { return d.Identity() + "." + strconv.Itoa(d.Replays+1) }

// ParseReplayMark reads the id of the replay and the nonce from HeaderReplay. ok is false for any other value:
// publishers can write anything.
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

// Target says which worker a replay runs. The zero Target changes nothing.
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

// String writes what ParseTo reads.
func (t Target) String() string {
	if t.Version == "" {
		return t.Worker
	}
	return t.Worker + "@" + t.Version
}

// Replay makes the message of the event that runs d again: its subject and headers. The message body is
// DeadLetter.Body. It runs the same worker in the version that the event asked for, unless to says otherwise. The
// caller sets a message id of its own. The deadline and the delay are left out, because they are in the past or soon
// will be. A message of a source stays one, unless it was imported or runs in another worker.
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
		if !serverHonoured(name) && !oneOfFold(name, HeaderReplays, HeaderReplay, HeaderDeadline, HeaderEventID,
			HeaderDeliverAt, HeaderDeliverAfter) &&
			(to == Target{} || !strings.EqualFold(name, HeaderWorkerVersion)) {
			h[name] = values
		}
	}
	if to.Version != "" {
		h.Set(HeaderWorkerVersion, to.Version)
	}
	if d.EventID != "" {
		h.Set(HeaderEventID, d.EventID) // it may have been the message id or the sequence
	}
	h.Set(HeaderReplays, strconv.Itoa(d.Replays+1))
	if err := h.CheckWritable(); err != nil {
		return "", nil, fmt.Errorf("dead letter %d cannot be replayed: %w; an edit can remove or replace headers", d.Seq, err)
	}
	if worker == d.Worker && d.Imported.IsZero() && s.Sourced(d.Subject) {
		return s.Source(d.Owner, worker), h, nil
	}
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

// Replays is how often the event was a dead letter and was replayed, as its publisher says. It is 0 for nearly all
// events.
func (e *Event) Replays() int { return replays(e.Header) }
