package events

import (
	"fmt"
	"strconv"
	"strings"
)

// Lanes is the number of partitions of the event stream. An owner is always in the same lane.
const Lanes = 16

// DefaultPrefix is the first token of every subject unless configured otherwise.
const DefaultPrefix = "pinwheel"

// Subjects makes and parses every subject of Pinwheel (docs/reference/wire.md, "Subjects"). Its value is the first
// token, DefaultPrefix unless configured otherwise.
type Subjects string

// Event is where a publisher puts an event: <prefix>.events.<kind>.<owner>.<worker>.
func (s Subjects) Event(k Kind, owner, worker string) string {
	return string(s) + ".events." + k.String() + "." + owner + "." + worker
}

// AllEvents is the filter of the event stream: the subjects to which publishers publish.
func (s Subjects) AllEvents() string { return string(s) + ".events.*.*.*" }

// Stored is the destination of the stream's subject transform for AllEvents:
// <prefix>.events.<lane>.<kind>.<owner>.<worker>. The owner (wildcard 2) decides the lane.
func (s Subjects) Stored() string {
	return fmt.Sprintf("%s.events.{{partition(%d,2)}}.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}", string(s), Lanes)
}

// AllStored is the filter for the subjects that Stored makes.
func (s Subjects) AllStored() string { return string(s) + ".events.>" }

// LaneOf is the lane of an owner, as the stream's subject transform computes it.
func LaneOf(owner string) int { return int(fnv1a(owner) % Lanes) }

// fnv1a is the FNV-1a hash of a name, by which NATS chooses partitions.
func fnv1a(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	return h
}

// Lane is the filter of the consumer of one lane, 0 <= lane < Lanes.
func (s Subjects) Lane(lane int) string { return string(s) + ".events." + strconv.Itoa(lane) + ".>" }

// StoredOwner is the filter for the events of an owner in all lanes.
func (s Subjects) StoredOwner(owner string) string { return string(s) + ".events.*.*." + owner + ".>" }

// LaneOwner is the filter for the events of an owner in a lane.
func (s Subjects) LaneOwner(lane int, owner string) string {
	return string(s) + ".events." + strconv.Itoa(lane) + ".*." + owner + ".>"
}

// StoredFor are the filters for the stored events of a worker: those of publishers, and those of its sources.
func (s Subjects) StoredFor(owner, worker string) []string {
	own := string(s) + ".events.*.*." + owner + "." + worker
	return []string{own, own + sourceSuffix}
}

// Anchor is the subject of the message that keeps the event stream from being empty. A WorkQueue stream that becomes
// empty drops its file block and must create a new one. No lane filters this subject.
func (s Subjects) Anchor() string { return string(s) + ".pin" }

// Call is where any NATS client may send a plain request: <prefix>.call.<kind>.<owner>.<worker>.
func (s Subjects) Call(k Kind, owner, worker string) string {
	return string(s) + ".call." + k.String() + "." + owner + "." + worker
}

// AllCalls is the filter of the call bridge. It takes any number of tokens, so that a caller with too many or too few
// tokens gets an error instead of no answer.
func (s Subjects) AllCalls() string { return string(s) + ".call.>" }

// Credit is where the requester of a body in chunks lets the sending process send more:
// <prefix>.credit.<owner>.<node>.<stream>. node and stream are tokens of that process.
func (s Subjects) Credit(owner, node, stream string) string {
	return string(s) + ".credit." + owner + "." + node + "." + stream
}

// Credits is the filter for the credits to one process.
func (s Subjects) Credits(node string) string { return string(s) + ".credit.*." + node + ".*" }

// Cancel is where a requester says that it no longer waits: <prefix>.cancel.<owner>.<worker>. The body is its Reply-To.
func (s Subjects) Cancel(owner, worker string) string {
	return string(s) + ".cancel." + owner + "." + worker
}

// AllCancels is the filter for these.
func (s Subjects) AllCancels() string { return string(s) + ".cancel.*.*" }

// ParseCancel parses a subject made by Cancel.
func (s Subjects) ParseCancel(subject string) (owner, worker string, ok bool) {
	rest, found := strings.CutPrefix(subject, string(s)+".cancel.")
	owner, worker, _ = strings.Cut(rest, ".")
	return owner, worker, found && ValidName(owner) && ValidName(worker)
}

// BodyPart is where a requester sends part i of a request body in parts, and where it is stored:
// <prefix>.body.<owner>.<id>.<i>. For EndPart the last token is "end".
func (s Subjects) BodyPart(owner, id string, i int) string {
	return string(s) + ".body." + owner + "." + id + "." + partToken(i)
}

func partToken(i int) string {
	if i == EndPart {
		return endToken
	}
	return strconv.Itoa(i)
}

const endToken = "end"

// PartCame is where the fleet reports that a part of a body was stored: <prefix>.control.parts.<owner>.<id>. Only the
// fleet listens there.
func (s Subjects) PartCame(owner, id string) string {
	return string(s) + ".control.parts." + owner + "." + id
}

// BodyParts is the filter for all parts of a body.
func (s Subjects) BodyParts(owner, id string) string {
	return string(s) + ".body." + owner + "." + id + ".*"
}

// BodyOwner is the filter for all parts of an owner.
func (s Subjects) BodyOwner(owner string) string { return string(s) + ".body." + owner + ".*.*" }

// AllBodies is the filter for all parts of all owners.
func (s Subjects) AllBodies() string { return string(s) + ".body.*.*.*" }

// ParseBodyPart parses a subject made by BodyPart. The error names the token that is wrong and what is allowed.
func (s Subjects) ParseBodyPart(subject string) (owner, id string, i int, err error) {
	rest, found := strings.CutPrefix(subject, string(s)+".body.")
	owner, id, number, ok := threeTokens(rest)
	if !found || !ok {
		return "", "", 0, fmt.Errorf("subject %q: it is %s.body.OWNER.ID.N", subject, string(s))
	}
	if err := CheckName("owner", owner); err != nil {
		return "", "", 0, err
	}
	if err := CheckName("id of a body", id); err != nil {
		return "", "", 0, err
	}
	if number == endToken {
		return owner, id, EndPart, nil
	}
	i, err = strconv.Atoi(number)
	if err != nil || i < 0 || i >= maxParts || strconv.Itoa(i) != number {
		return "", "", 0, fmt.Errorf("part %.20q: it is a number, 0 to %d, or %s", number, maxParts-1, endToken)
	}
	return owner, id, i, nil
}

// StorePart is where the fleet publishes such a part to have it stored: <prefix>.part.<owner>.<id>.<i>. Only the fleet
// may publish there.
func (s Subjects) StorePart(owner, id string, i int) string {
	return string(s) + ".part." + owner + "." + id + "." + partToken(i)
}

// AllParts is the filter of the stream of parts.
func (s Subjects) AllParts() string { return string(s) + ".part.*.*.*" }

// StoredParts is the destination of that stream's subject transform. A part is stored under the subject that its
// requester knows.
func (s Subjects) StoredParts() string {
	return string(s) + ".body.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(3)}}"
}

// Logs is where console output and uncaught errors of a worker go (core NATS, not stored).
func (s Subjects) Logs(owner, worker string) string {
	return string(s) + ".logs." + owner + "." + worker
}

// AllDead is the filter of the dead letter stream.
func (s Subjects) AllDead() string { return string(s) + ".dead.>" }

// Dead is the only subject of an event's dead letter: <prefix>.dead.<owner>.<worker>.<kind>.<reason>.<stream>.<seq>.
// "~", which is never a name, stands for a token that is not a valid name.
func (s Subjects) Dead(e *Event, r Reason) string {
	first := e.FirstStored()
	return strings.Join([]string{
		string(s), "dead", nameOrTilde(e.Owner), nameOrTilde(e.Worker), e.Kind.String(), string(r),
		first.Stream, strconv.FormatUint(first.Seq, 10),
	}, ".")
}

// DeadFilter is the filter for dead letters of an owner, worker, kind and reason. An empty string stands for any.
func (s Subjects) DeadFilter(owner, worker, kind string, r Reason) string {
	parts := []string{string(s), "dead", owner, worker, kind, string(r), "*", "*"}
	for i, p := range parts {
		if p == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// DeadOwner is the filter for the dead letters of an owner.
func (s Subjects) DeadOwner(owner string) string { return string(s) + ".dead." + owner + ".>" }

// Runs is where the record of an attempt is stored: <prefix>.runs.<owner>.<worker>.<version>.<outcome>.<event>. Version
// is the number of the version, and event a hash of the event's id. It is also the filter for such records. An empty
// string stands for any.
func (s Subjects) Runs(owner, worker, version, outcome, event string) string {
	parts := []string{string(s), "runs", owner, worker, version, outcome, event}
	for i, p := range parts {
		if p == "" {
			parts[i] = "*"
		}
	}
	return strings.Join(parts, ".")
}

// AllParked is the filter of the parked stream.
func (s Subjects) AllParked() string { return string(s) + ".parked.>" }

// Parked is where an event waits while its owner has no room for it: <prefix>.parked.<owner>.<kind>.<worker>. The owner
// comes first, to filter by.
func (s Subjects) Parked(e *Event) string {
	return s.parkedOwner(e.Owner) + e.Kind.String() + "." + e.Worker
}

// ParkedOwner is the filter for the parked events of an owner.
func (s Subjects) ParkedOwner(owner string) string { return s.parkedOwner(owner) + ">" }

// Held is where an event waits while its worker is paused, for the subject at which it is parked:
// <prefix>.parked.<owner>.<kind>.<worker>.held. Events of the owner's other workers do not wait behind it there.
func Held(parked string) string { return parked + held }

const held = ".held"

// ParkedFor is the filter for the parked events of a worker but those that are held; "*" is any worker.
func (s Subjects) ParkedFor(owner, worker string) string {
	return s.parkedOwner(owner) + "*." + worker
}

// ParseParked returns the owner and the worker in a subject made by Parked or Held.
func (s Subjects) ParseParked(subject string) (owner, worker string, isHeld, ok bool) {
	rest, found := strings.CutPrefix(subject, string(s)+".parked.")
	owner, rest, more := strings.Cut(rest, ".")
	_, worker, _ = strings.Cut(rest, ".")
	worker, isHeld = strings.CutSuffix(worker, held)
	return owner, worker, isHeld, found && more && ValidName(owner)
}

// ParkedAnchor is the subject of the message that keeps that stream from being empty. It belongs to no owner.
func (s Subjects) ParkedAnchor() string { return string(s) + ".parked.pin" }

func (s Subjects) parkedOwner(owner string) string { return string(s) + ".parked." + owner + "." }

// Owned reports whether only Pinwheel or its publishers may publish to subject. A reply never goes there.
func (s Subjects) Owned(subject string) bool {
	return strings.HasPrefix(subject, string(s)+".")
}

// ParseStored parses the subject of a stored event. It does not check that the tokens are names or a kind. ok is false
// when the subject has another shape.
func (s Subjects) ParseStored(subject string) (lane int, kind, owner, worker string, ok bool) {
	rest, found := strings.CutPrefix(subject, string(s)+".events.")
	if !found {
		return 0, "", "", "", false
	}
	laneToken, rest, _ := strings.Cut(rest, ".")
	if s.Sourced(subject) {
		rest = strings.TrimSuffix(rest, sourceSuffix)
	}
	kind, owner, worker, ok = threeTokens(rest)
	lane, err := strconv.Atoi(laneToken)
	if err != nil || lane < 0 || lane >= Lanes {
		return 0, "", "", "", false
	}
	return lane, kind, owner, worker, ok
}

// ParseCall parses the subject of a call and checks kind and names. The error names the token that is wrong and what is
// allowed.
func (s Subjects) ParseCall(subject string) (k Kind, owner, worker string, err error) {
	rest, found := strings.CutPrefix(subject, string(s)+".call.")
	kind, owner, worker, ok := threeTokens(rest)
	if !found || !ok {
		return 0, "", "", fmt.Errorf("subject %q: it is %s.call.KIND.OWNER.WORKER", subject, string(s))
	}
	if k, err = ParseKind(kind); err != nil {
		return 0, "", "", err
	}
	if err = CheckName("owner", owner); err != nil {
		return 0, "", "", err
	}
	if err = CheckName("worker", worker); err != nil {
		return 0, "", "", err
	}
	return k, owner, worker, nil
}

// OwnerIn returns the owner in a subject that begins with prefix, as the token after skip others. It looks at no other
// token, and is "" if there is no valid owner.
func OwnerIn(subject, prefix string, skip int) string {
	rest, _ := strings.CutPrefix(subject, prefix)
	for range skip {
		_, rest, _ = strings.Cut(rest, ".")
	}
	owner, _, _ := strings.Cut(rest, ".")
	if !ValidName(owner) {
		return ""
	}
	return owner
}

func threeTokens(s string) (a, b, c string, ok bool) {
	a, rest, ok1 := strings.Cut(s, ".")
	b, c, ok2 := strings.Cut(rest, ".")
	return a, b, c, ok1 && ok2 && a != "" && b != "" && c != "" && !strings.Contains(c, ".")
}

func nameOrTilde(s string) string {
	if ValidName(s) {
		return s
	}
	return "~"
}

// Names of the streams and the bucket of a fleet in JetStream. They do not depend on the prefix of the subjects.
const (
	StreamEvents    = "PINWHEEL_EVENTS"    // events to run
	StreamBodies    = "PINWHEEL_BODIES"    // request bodies in parts
	StreamResults   = "PINWHEEL_RESULTS"   // results of idempotent workers
	StreamDead      = "PINWHEEL_DEAD"      // dead letters
	StreamParked    = "PINWHEEL_PARKED"    // events of owners that have too many queued
	StreamSchedules = "PINWHEEL_SCHEDULES" // what is to run later; only the fleet may publish there
	StreamRuns      = "PINWHEEL_RUNS"      // records of ended attempts; only the fleet may publish there
	BucketAttempts  = "PINWHEEL_ATTEMPTS"  // records of runs, claims and ends of replays
)

// OwnerInPrefix stands for the owner of the event in a reply prefix, so that no owner's event can name another owner's
// inbox.
const OwnerInPrefix = "{owner}"

// CheckReplyPrefix returns an error that says what is wrong with p as a prefix of Reply-To, or nil.
func CheckReplyPrefix(p string, s Subjects) error {
	_, after, has := strings.Cut(p, OwnerInPrefix)
	switch {
	case p == "", strings.HasPrefix(p, "$"), s.Owned(p), strings.ContainsAny(p, " \t\r\n*>"):
	case has && !strings.HasPrefix(after, "."), strings.Contains(after, OwnerInPrefix):
	default:
		return nil
	}
	return fmt.Errorf("reply prefix %q: a prefix is not empty, has no wildcards, "+
		"begins neither with $ nor with %s and a dot, and has a dot after %s", p, s, OwnerInPrefix)
}

// hasReplyPrefix reports whether subject begins with prefix, for an event of owner.
func hasReplyPrefix(subject, prefix, owner string) bool {
	before, after, has := strings.Cut(prefix, OwnerInPrefix)
	rest, ok := strings.CutPrefix(subject, before)
	if !has || !ok {
		return ok
	}
	rest, ok = strings.CutPrefix(rest, owner)
	return ok && ValidName(owner) && strings.HasPrefix(rest, after)
}
