package events

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// LetterJSON is a dead letter as JSON: in the output of commands, exports, answers of endpoints and task events of
// hooks (docs/reference/wire.md).
type LetterJSON struct {
	ID        uint64      `json:"id,omitempty"`
	Owner     string      `json:"owner"`
	Worker    string      `json:"worker"`
	Kind      string      `json:"kind"`
	EventID   string      `json:"eventId"`
	Reason    Reason      `json:"reason"`
	Message   string      `json:"message"`
	Stack     string      `json:"stack,omitempty"`
	Version   string      `json:"version,omitempty"`
	Node      string      `json:"node,omitempty"`
	Attempts  int         `json:"attempts"`
	Replays   int         `json:"replays"`
	FirstAt   time.Time   `json:"firstAt"`
	At        time.Time   `json:"at"`
	History   []FailedRun `json:"history,omitempty"`
	Edited    time.Time   `json:"edited,omitzero"`
	Imported  time.Time   `json:"imported,omitzero"`
	Hook      *DeadHook   `json:"onDeadLetter,omitempty"`
	Subject   string      `json:"subject"`
	Stream    string      `json:"stream"`
	StreamSeq uint64      `json:"streamSeq"`
	Stored    time.Time   `json:"stored,omitzero"`
	Headers   Header      `json:"headers"`
	BodyBytes int         `json:"bodyBytes"`

	// One of these, if the body is wanted: Body for text, BodyBase64 for other bytes.
	Body       *string `json:"body,omitempty"`
	BodyBase64 []byte  `json:"bodyBase64,omitempty"`

	// HeaderBlock is the event's header block, if the event has headers that a NATS client does not write, or too many.
	// It comes with the body.
	HeaderBlock []byte `json:"headerBlock,omitempty"`

	// Raw has all headers of the letter's message, each as name and value, if some of them are not UTF-8: JSON would
	// change those.
	Raw [][2][]byte `json:"raw,omitempty"`
}

// JSON is d for json.Marshal, with or without its body.
func (d *DeadLetter) JSON(body bool) *LetterJSON {
	j := &LetterJSON{
		ID: d.Seq, Owner: d.Owner, Worker: d.Worker, Kind: d.Kind, EventID: d.EventID,
		Reason: d.Failure.Reason, Message: d.Failure.Message, Stack: d.Failure.Stack, Version: d.Version, Node: d.Node,
		Attempts: d.Attempts, Replays: d.Replays, FirstAt: d.FirstAt, At: d.At, History: d.History, Edited: d.Edited,
		Imported: d.Imported,
		Subject:  d.Subject, Stream: d.Stream, StreamSeq: d.StreamSeq, Stored: d.Stored, Headers: d.Header,
		BodyBytes: len(d.Body),
	}
	if d.Hook != (DeadHook{}) {
		j.Hook = &d.Hook
	}
	encoded := d.Encode()
	if !allText(encoded) {
		for name, values := range encoded {
			for _, v := range values {
				j.Raw = append(j.Raw, [2][]byte{[]byte(name), []byte(v)})
			}
		}
	}
	if body {
		j.HeaderBlock = d.Block
	}
	switch {
	case !body:
	case utf8.Valid(d.Body):
		text := string(d.Body)
		j.Body = &text
	default:
		j.BodyBase64 = d.Body
	}
	return j
}

func allText(h Header) bool {
	for name, values := range h {
		for _, v := range values {
			if !utf8.ValidString(v) {
				return false
			}
		}
		if !utf8.ValidString(name) {
			return false
		}
	}
	return true
}

// ParseLetter reads the JSON of a dead letter with its body, as in an export. The letter can be stored. The error names
// what is wrong.
func ParseLetter(text []byte) (*DeadLetter, error) {
	var j LetterJSON
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil {
		return nil, fmt.Errorf("not a dead letter: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not a dead letter: something follows the JSON object")
	}
	d, err := j.Letter()
	if err == nil {
		err = d.storable()
	}
	if err != nil {
		return nil, fmt.Errorf("not a dead letter: %w", err)
	}
	return d, nil
}

// Letter returns the letter. The error says that its body is missing, or what is wrong.
func (j *LetterJSON) Letter() (*DeadLetter, error) {
	body := j.BodyBase64
	switch {
	case j.Body != nil && j.BodyBase64 != nil:
		return nil, errors.New("it has a body and a bodyBase64")
	case j.Body != nil:
		body = []byte(*j.Body)
	}
	if len(body) != j.BodyBytes {
		return nil, fmt.Errorf("its body has %d bytes, and bodyBytes is %d: export prints letters with their bodies", len(body), j.BodyBytes)
	}
	if j.Raw != nil {
		h := Header{}
		for _, pair := range j.Raw {
			h[string(pair[0])] = append(h[string(pair[0])], string(pair[1]))
		}
		return DecodeDeadLetter(j.ID, h, slices.Concat(j.HeaderBlock, body))
	}
	d := &DeadLetter{
		Seq: j.ID, Owner: j.Owner, Worker: j.Worker, Kind: j.Kind, EventID: j.EventID,
		Failure: *NewFailure(j.Reason, j.Message, j.Stack), Version: j.Version, Node: j.Node,
		Attempts: j.Attempts, Replays: j.Replays, FirstAt: j.FirstAt, At: j.At, History: j.History, Edited: j.Edited,
		Imported: j.Imported,
		Subject:  j.Subject, Stream: j.Stream, StreamSeq: j.StreamSeq, Stored: j.Stored, Header: j.Headers, Body: body,
	}
	if j.Hook != nil {
		d.Hook = *j.Hook
	}
	if j.HeaderBlock != nil {
		d.KeepBlock(j.HeaderBlock)
	}
	return d, nil
}

// storable returns an error when Pinwheel itself could not have stored d.
func (d *DeadLetter) storable() error {
	if _, err := ParseReason(string(d.Failure.Reason)); err != nil {
		return err
	}
	switch {
	case !validStream(d.Stream) || d.StreamSeq == 0:
		return fmt.Errorf("stream %q and streamSeq %d: they are where the event was stored", d.Stream, d.StreamSeq)
	case d.At.IsZero() || d.FirstAt.IsZero():
		return errors.New("at and firstAt: they are times in RFC 3339")
	case d.Attempts < 0 || d.Replays < 0:
		return fmt.Errorf("attempts %d and replays %d: they are 0 or more", d.Attempts, d.Replays)
	case len(d.Failure.Reason) == 0:
		return errors.New("it has no reason")
	}
	if d.Hook != (DeadHook{}) {
		if err := d.Hook.Validate(); err != nil {
			return err
		}
	}
	for name, values := range d.Encode() {
		if err := checkWritable(name, values); err != nil {
			return err
		}
	}
	return nil
}

// ImportFor prepares a letter that an owner's people import: d has the owner as its own, and must not say more than the
// fleet would have written. It removes the headers of the event that only the fleet writes. The error names the field
// that is wrong.
func (d *DeadLetter) ImportFor(owner string) error {
	switch {
	case d.Owner != owner:
		return fmt.Errorf("owner %.80q: the letter is not of owner %s", d.Owner, owner)
	case !slices.Contains(strings.Split(d.Subject, "."), owner):
		return fmt.Errorf("subject %.80q: it is where the event was stored, with owner %s", d.Subject, owner)
	case d.Version != "" && !validVersion(d.Version):
		return fmt.Errorf("version %.80q: it is a version like 12-0123456789ab", d.Version)
	case !validID(d.EventID):
		return fmt.Errorf("eventId: it is at most %d bytes of UTF-8", MaxEventID)
	case len(d.History) > MaxHistory:
		return fmt.Errorf("history has %d runs: it has at most %d", len(d.History), MaxHistory)
	}
	if err := CheckText("node", d.Node, MaxNote); err != nil {
		return err
	}
	for _, run := range d.History {
		if run.Reason != "" {
			if _, err := ParseReason(string(run.Reason)); err != nil {
				return fmt.Errorf("history: %w", err)
			}
		}
		if err := CheckText("history: node", run.Node, MaxNote); err != nil {
			return err
		}
	}
	before := len(d.Header)
	maps.DeleteFunc(d.Header, func(name string, _ []string) bool { return hasPrefixFold(name, deadPrefix) })
	if d.Block != nil && len(d.Header) < before {
		d.Block = d.Header.Block()
	}
	return nil
}

func validStream(s string) bool {
	return s != "" && len(s) <= 255 && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r == 0x7f ||
			strings.ContainsRune(".*>/\\", r)
	})
}

// checkHeader returns an error when NATS would change or refuse such a header, or when it is no text.
func checkHeader(name, value string) error {
	if err := checkWritable(name, nil); err != nil {
		return err
	}
	if strings.ContainsAny(value, "\r\n\x00") || strings.Trim(value, " \t") != value {
		return fmt.Errorf("header %s %q: a value has no line breaks or NULs, and no white space around it", name, value)
	}
	return nil
}

// DeadLetter is the subject of d. It is the same as Dead of the event that d was made of.
func (s Subjects) DeadLetter(d *DeadLetter, r Reason) string {
	k, _ := ParseKind(d.Kind) // the zero Kind is unknown
	return s.Dead(&Event{Owner: d.Owner, Worker: d.Worker, Kind: k, Origin: Origin{Stream: d.Stream, Seq: d.StreamSeq}}, r)
}
