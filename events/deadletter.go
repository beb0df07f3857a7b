package events

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Headers of a dead letter, beside the original ones (docs/reference/wire.md, "Dead letters").
const (
	deadPrefix = "Dead-"
	// An original header that has a meaning for NATS, or that looks like one of Pinwheel's, is kept under this prefix.
	// So nothing is lost, and the header has no effect where the dead letter is stored and read.
	deadOriginal = "Dead-Original-"

	headerDeadReason   = "Dead-Reason"
	headerDeadMessage  = "Dead-Message"
	headerDeadStack    = "Dead-Stack" // URL-escaped: header values are one line
	headerDeadOwner    = "Dead-Owner"
	headerDeadWorker   = "Dead-Worker"
	headerDeadKind     = "Dead-Kind"
	headerDeadSubject  = "Dead-Subject" // as stored in the event stream
	headerDeadStream   = "Dead-Stream"
	headerDeadSeq      = "Dead-Seq"
	headerDeadStored   = "Dead-Stored" // when the event was stored
	headerDeadEventID  = "Dead-Event-Id"
	headerDeadVersion  = "Dead-Worker-Version"
	headerDeadNode     = "Dead-Node"
	headerDeadAttempts = "Dead-Attempts"
	headerDeadFirstAt  = "Dead-First-At"
	headerDeadAt       = "Dead-At"
	headerDeadHistory  = "Dead-History"  // JSON, see FailedRun
	headerDeadEdited   = "Dead-Edited"   // when it was edited last
	headerDeadImported = "Dead-Imported" // when it was imported
	headerDeadHook     = "Dead-Hook"     // who gets it, see DeadHook
	// headerDeadBlock is set in a letter whose body begins with the event's header block: its size and the event's kind.
	// Dead-Kind is then deadBlocked, so that earlier binaries do not take the block for a part of the event's body.
	headerDeadBlock = "Dead-Header-Block"
	deadBlocked     = "headers-in-body"
	// HeaderReplays of an event says how often it was a dead letter and was replayed.
	HeaderReplays = "Dead-Replays"
)

// DeadLetter is an event that failed finally, and how it failed.
type DeadLetter struct {
	Seq uint64 // in the stream of dead letters; its id for people. Not encoded.

	Owner, Worker string
	Kind          string // as in the subject; an unknown kind may be the reason of the failure
	EventID       string
	Failure       Failure
	Version       string // of the worker that failed last, "" if none ran
	Node          string // process that wrote it
	Attempts      int    // started runs
	Replays       int    // earlier replays
	FirstAt       time.Time
	At            time.Time
	History       []FailedRun // the last runs that failed, oldest first; at most MaxHistory
	Edited        time.Time   // when Header or Body was edited last; zero = never
	Imported      time.Time   // when it was imported from an export; zero = it was not
	Hook          DeadHook    // who gets it; zero = no one

	Subject   string // of the stored event
	Stream    string
	StreamSeq uint64
	Stored    time.Time // when the event was stored, by the clock of the server; zero in letters from earlier binaries

	Header Header // original, complete
	Body   []byte // original
	// Block is the event's header block, if its headers cannot be the headers of the letter's message: a NATS client
	// does not write them, or they leave no room. The letter's message has it before Body. Header then is what
	// ParseBlock reads.
	Block []byte
}

// KeepBlock makes block the header block of d.
func (d *DeadLetter) KeepBlock(block []byte) { d.Block, d.Header = block, ParseBlock(block) }

// Data is the body of the letter's message.
func (d *DeadLetter) Data() []byte {
	if d.Block == nil {
		return d.Body
	}
	return slices.Concat(d.Block, d.Body)
}

// NewDeadLetter makes the dead letter of e. attempts is the number of started runs, at is now.
func NewDeadLetter(e *Event, f *Failure, version, node string, attempts int, at time.Time) *DeadLetter {
	_, kind, _, _, _ := subjectTokens(e.Origin.Subject)
	first := e.FirstStored()
	return &DeadLetter{
		Owner: e.Owner, Worker: e.Worker, Kind: kind, EventID: e.ID, Failure: *f, Version: version, Node: node,
		Attempts: attempts, Replays: replays(e.Header), FirstAt: e.Stored, At: at,
		Subject: e.Origin.Subject, Stream: first.Stream, StreamSeq: first.Seq, Stored: e.Stored,
		Header: e.Header, Body: e.Body,
	}
}

// subjectTokens are the last tokens of a stored subject, with any prefix.
func subjectTokens(subject string) (lane, kind, owner, worker string, ok bool) {
	if strings.Count(subject, ".") == 6 {
		subject = strings.TrimSuffix(subject, sourceSuffix)
	}
	t := strings.Split(subject, ".")
	if len(t) < 4 {
		return "", "unknown", "", "", false
	}
	t = t[len(t)-4:]
	return t[0], t[1], t[2], t[3], true
}

func replays(h Header) int {
	n, err := strconv.Atoi(h.Get(HeaderReplays))
	if err != nil || n < 0 || n > 1e6 {
		return 0
	}
	return n
}

// Encode makes the headers of the dead letter's message. The message body is DeadLetter.Data.
func (d *DeadLetter) Encode() Header {
	h, original, kind, block := make(Header, len(d.Header)+20), d.Header, d.Kind, ""
	if d.Block != nil {
		original, kind, block = nil, deadBlocked, strconv.Itoa(len(d.Block))+" "+d.Kind
	}
	for name, values := range original {
		if serverHonoured(name) || hasPrefixFold(name, deadPrefix) {
			name = deadOriginal + name
		}
		h[name] = values
	}
	for name, value := range map[string]string{
		headerDeadReason: string(d.Failure.Reason), headerDeadMessage: oneLine(d.Failure.Message),
		headerDeadStack: url.PathEscape(d.Failure.Stack),
		headerDeadOwner: d.Owner, headerDeadWorker: d.Worker, headerDeadKind: kind, headerDeadBlock: block,
		headerDeadSubject: d.Subject, headerDeadStream: d.Stream, headerDeadSeq: strconv.FormatUint(d.StreamSeq, 10),
		headerDeadEventID: d.EventID, headerDeadVersion: d.Version, headerDeadNode: d.Node,
		headerDeadAttempts: strconv.Itoa(d.Attempts), HeaderReplays: strconv.Itoa(d.Replays),
		headerDeadFirstAt: formatTime(d.FirstAt), headerDeadAt: formatTime(d.At),
		headerDeadHistory: encodeHistory(d.History), headerDeadHook: d.Hook.String(),
		headerDeadEdited: formatMaybe(d.Edited), headerDeadImported: formatMaybe(d.Imported),
		headerDeadStored: formatMaybe(d.Stored),
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// DecodeDeadLetter reads a message of the stream of dead letters. The error names the header that is wrong.
func DecodeDeadLetter(seq uint64, h Header, body []byte) (*DeadLetter, error) {
	d := &DeadLetter{
		Seq: seq, Owner: h.Get(headerDeadOwner), Worker: h.Get(headerDeadWorker), Kind: h.Get(headerDeadKind),
		EventID: h.Get(headerDeadEventID), Version: h.Get(headerDeadVersion), Node: h.Get(headerDeadNode),
		Subject: h.Get(headerDeadSubject), Stream: h.Get(headerDeadStream), Replays: replays(h),
		Header: make(Header, len(h)), Body: body,
	}
	stack, err := url.PathUnescape(h.Get(headerDeadStack))
	if err != nil {
		return nil, fmt.Errorf("dead letter header %s: %w", headerDeadStack, err)
	}
	d.Failure = *NewFailure(Reason(h.Get(headerDeadReason)), h.Get(headerDeadMessage), stack)
	if d.StreamSeq, err = strconv.ParseUint(h.Get(headerDeadSeq), 10, 64); err != nil {
		return nil, fmt.Errorf("dead letter header %s %q: it is a number", headerDeadSeq, h.Get(headerDeadSeq))
	}
	if d.Attempts, err = strconv.Atoi(h.Get(headerDeadAttempts)); err != nil {
		return nil, fmt.Errorf("dead letter header %s %q: it is a number", headerDeadAttempts, h.Get(headerDeadAttempts))
	}
	for name, into := range map[string]*time.Time{headerDeadFirstAt: &d.FirstAt, headerDeadAt: &d.At} {
		if *into, err = time.Parse(time.RFC3339Nano, h.Get(name)); err != nil {
			return nil, fmt.Errorf("dead letter header %s %q: it is a time in RFC 3339", name, h.Get(name))
		}
	}
	for name, into := range map[string]*time.Time{headerDeadEdited: &d.Edited, headerDeadImported: &d.Imported,
		headerDeadStored: &d.Stored} {
		if v := h.Get(name); v != "" {
			if *into, err = time.Parse(time.RFC3339Nano, v); err != nil {
				return nil, fmt.Errorf("dead letter header %s %q: it is a time in RFC 3339", name, v)
			}
		}
	}
	if d.History, err = decodeHistory(h.Get(headerDeadHistory)); err != nil {
		return nil, fmt.Errorf("dead letter header %s: %w", headerDeadHistory, err)
	}
	if d.Hook, err = parseDeadHook(h.Get(headerDeadHook)); err != nil {
		return nil, fmt.Errorf("dead letter header %s: %w", headerDeadHook, err)
	}
	if block := h.Get(headerDeadBlock); block != "" {
		if err := d.takeBlock(block); err != nil {
			return nil, err
		}
		return d, nil
	}
	for name, values := range h {
		if original, ok := strings.CutPrefix(name, deadOriginal); ok {
			d.Header[original] = values
		} else if !strings.HasPrefix(name, deadPrefix) && !serverHonoured(name) {
			d.Header[name] = values
		}
	}
	return d, nil
}

// takeBlock takes the header block from the body, which begins with it. value is that of headerDeadBlock.
func (d *DeadLetter) takeBlock(value string) error {
	size, kind, _ := strings.Cut(value, " ")
	n, err := strconv.Atoi(size)
	if err != nil || n < 1 || n > len(d.Body) {
		return fmt.Errorf("dead letter header %s %q: it is a number of bytes, 1 to %d, and a kind", headerDeadBlock, value, len(d.Body))
	}
	d.Kind = kind
	d.KeepBlock(d.Body[:n:n])
	d.Body = d.Body[n:]
	return nil
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// formatMaybe is "" for the zero time.
func formatMaybe(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return formatTime(t)
}
