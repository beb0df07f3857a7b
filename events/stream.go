package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Requester waits for the reply to an event and takes its body in chunks (docs/reference/wire.md, "Bodies in chunks").
type Requester struct {
	// Credit is the number of bytes of the body that it takes before it grants more, at least 1.
	Credit int64

	gone Signal
}

// Gone says that the requester no longer waits. Any goroutine may call it.
func (r *Requester) Gone() { r.gone.Fire() }

// OnGone calls f once when the requester has gone; immediately if it has gone already. nil removes the last f. Any
// goroutine may call f.
func (r *Requester) OnGone(f func()) { r.gone.On(f) }

// Parts is the body of a fetch event that is stored apart from it, in parts (docs/reference/wire.md, "Request bodies in
// parts").
type Parts struct {
	ID string
	N  int // parts, at least 1; 0 when the body is Live
	// Live: parts come while the event runs. Their number is known when the last one has come.
	Live bool
	// Size is the number of bytes of the body; 0 = not known. The process has it from the server of the connection, never
	// from a publisher.
	Size int64

	// Read returns part i, 0 <= i < N. For a live body it waits for that part; the error is io.EOF when the body has at
	// most i parts. Any goroutine may call it.
	Read func(ctx context.Context, i int) ([]byte, error)
	// Free takes back the memory of the part that Read returned last; nil = it is not used again. It is for the goroutine
	// that reads.
	Free func(part []byte)
}

// LiveParts is the value of HeaderBodyParts for a live body.
const LiveParts = "*"

// EndPart is the number of the part of a live body that says how many parts there are.
const EndPart = -1

// ErrGivenUp is the error of a live body that its sender will not complete.
var ErrGivenUp = errors.New("its sender gave it up")

// maxEnd is the longest reason in the end of a live body, bytes.
const maxEnd = 256

// EncodeEnd makes the message body of the end of a live body with n parts.
func EncodeEnd(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// EncodeBreak makes the message body of the end of a live body that is not complete, with the reason.
func EncodeBreak(why string) []byte {
	return []byte("!" + strings.ToValidUTF8(why[:min(len(why), maxEnd-1)], ""))
}

// DecodeEnd reads the message body of the end of a live body. The error says why the live body is not complete, or that
// the message is not valid.
func DecodeEnd(data []byte) (n int, err error) {
	text := string(data[:min(len(data), maxEnd)])
	if why, broken := strings.CutPrefix(text, "!"); broken {
		return 0, fmt.Errorf("%w: %s", ErrGivenUp, strings.ToValidUTF8(why, ""))
	}
	n, err = strconv.Atoi(text)
	if err != nil || n < 0 || n > maxParts || strconv.Itoa(n) != text {
		return 0, fmt.Errorf("its end says %.20q: it is the number of parts, 0 to %d, or ! and why there are no more", data, maxParts)
	}
	return n, nil
}

// BodyRead is the message to an event's Reply-To that tells the sender of a live body how many parts the handler has
// taken so far.
func BodyRead(eventID string, n int) Header {
	return Header{HeaderEventID: {eventID}, HeaderBodyRead: {strconv.Itoa(n)}}
}

// maxParts is the most parts a body may have.
const maxParts = 1 << 20

// Chunk is a piece of a reply's body, or its end.
type Chunk struct {
	Data    []byte
	End     bool     // this is the end of a complete body
	Failure *Failure // the body ends here, incomplete; nothing follows
	Waits   bool     // the rest waits for a grant; Data is empty
}

// maxJoined is the most bytes of a chunk that Push joins from several.
const maxJoined = 64 << 10

// join adds c to the chunk before it, if both are short and only data.
func (before *Chunk) join(c Chunk) bool {
	if c.End || c.Failure != nil || c.Waits || before.Waits || len(before.Data)+len(c.Data) > maxJoined {
		return false
	}
	before.Data = append(before.Data, c.Data...)
	return true
}

// Stream is the rest of a reply's body. The run that makes the body pushes chunks. The publisher of the reply takes
// them and says how much may follow. Nothing is pushed beyond what was granted, so a Stream holds at most that.
type Stream struct {
	// Grant lets the body continue up to that many bytes in total. Cancel ends it. Any goroutine may call both.
	Grant  func(upTo int64)
	Cancel func(why string)

	// Passes: a goroutine that may wait for the client makes the body, and calls Offer. It is set before the reply is
	// reported.
	Passes bool

	mu       sync.Mutex
	chunks   []Chunk
	notify   func()
	notified bool // notify was called, and Take was not yet
	through  func(data []byte) error
}

// Push adds a chunk, and takes over its Data. Short chunks that were not taken yet become one. Any goroutine may call
// it.
func (s *Stream) Push(c Chunk) {
	s.mu.Lock()
	s.add(c)
}

// add adds a chunk. It is called with the lock, and gives it back.
func (s *Stream) add(c Chunk) {
	if last := len(s.chunks) - 1; last < 0 || !s.chunks[last].join(c) {
		s.chunks = append(s.chunks, c)
	}
	f := s.notice()
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// Offer is Push for a goroutine that may wait for the client. If the publisher called Through, Offer takes nothing and
// returns the function to write the data with, whose memory it does not keep. nil = c was pushed.
func (s *Stream) Offer(c Chunk) (write func(data []byte) error) {
	s.mu.Lock()
	if s.through != nil {
		defer s.mu.Unlock()
		return s.through
	}
	s.add(c)
	return nil
}

// Through has all data from now on go to write, on the goroutine that has it, without credit. Only the end of the body,
// or why it broke off, is still pushed. It reports false when the body is not such a one, or when there are chunks to
// Take first. Only the goroutine that writes what it took may call it.
func (s *Stream) Through(write func(data []byte) error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.Passes || len(s.chunks) > 0 {
		return false
	}
	s.through = write
	return true
}

// notice returns the function to call because there are chunks to take, or nil when it was called already. The caller
// holds the lock.
func (s *Stream) notice() func() {
	if s.notified || s.notify == nil || len(s.chunks) == 0 {
		return nil
	}
	s.notified = true
	return s.notify
}

// OnChunks calls f when there are chunks to Take; immediately if there are some now. It calls f again only after a
// Take.
func (s *Stream) OnChunks(f func()) {
	s.mu.Lock()
	s.notify, s.notified = f, false
	f = s.notice()
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// Take returns what was pushed since the last Take.
func (s *Stream) Take() []Chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunks := s.chunks
	s.chunks, s.notified = nil, false
	return chunks
}

// Headers of a body in chunks.
const (
	HeaderBodyCredit = "Body-Credit" // request: bytes that the requester takes; reply: the subject to grant more on
	HeaderBodySeq    = "Body-Seq"    // 0 for the reply itself, then 1, 2, …
	HeaderBodyEnd    = "Body-End"    // on the last chunk: bytes of the whole body
	HeaderBodyError  = "Body-Error"  // on the last chunk of a body that broke off: "reason: message"
	HeaderBodyID     = "Body-Id"     // request: the name of the parts of its body
	HeaderBodyParts  = "Body-Parts"  // request: the number of parts; LiveParts: they come while the event runs
	HeaderBodyRead   = "Body-Read"   // to Reply-To, not the reply: the number of parts of a live body that were taken
)

// EncodeChunk makes the headers of the message of a chunk. The message body is c.Data. total is the number of bytes of
// the reply body so far, with this chunk.
func EncodeChunk(eventID string, seq int, total int64, c Chunk) Header {
	h := Header{HeaderEventID: {eventID}, HeaderBodySeq: {strconv.Itoa(seq)}}
	switch {
	case c.Failure != nil:
		h[HeaderBodyError] = []string{oneLine(c.Failure.Error())}
	case c.End:
		h[HeaderBodyEnd] = []string{strconv.FormatInt(total, 10)}
	}
	return h
}

// DecodeChunk reads such a message. before is the number of bytes of the chunks before it. The error says what breaks
// the contract; a missing chunk is such an error.
func DecodeChunk(h Header, body []byte, seq int, before int64) (Chunk, error) {
	c := Chunk{Data: body}
	if got := h.Get(HeaderBodySeq); got != strconv.Itoa(seq) {
		return c, fmt.Errorf("chunk %.20q came where %d was due: one was lost", got, seq)
	}
	if v := h.Get(HeaderBodyError); v != "" {
		reason, message, _ := strings.Cut(v, ": ")
		c.Failure = NewFailure(Reason(reason), message, "")
		return c, nil
	}
	if v := h.Get(HeaderBodyEnd); v != "" {
		c.End = true
		if total := before + int64(len(body)); v != strconv.FormatInt(total, 10) {
			return c, fmt.Errorf("the body has %d bytes, and header %s says %.20q", total, HeaderBodyEnd, v)
		}
	}
	return c, nil
}

// GoneCredit is what a requester publishes to the credit subject when it takes no more.
const GoneCredit = "cancel"

// ParseCredit reads what came on a credit subject: up to how many bytes in all the requester takes.
func ParseCredit(body []byte) (upTo int64, gone bool, err error) {
	if string(body) == GoneCredit {
		return 0, true, nil
	}
	n, err := strconv.ParseInt(string(body), 10, 64)
	if err != nil || n < 0 {
		return 0, false, fmt.Errorf("credit %.20q: it is a number of bytes, or %q", body, GoneCredit)
	}
	return min(n, maxCredit), false, nil // no body is longer
}

// Signal is something that happens at most once. The zero Signal has not happened. Any goroutine may use it.
type Signal struct {
	mu    sync.Mutex
	fired bool
	on    func()
}

// Fire says that it has happened.
func (s *Signal) Fire() {
	s.mu.Lock()
	f := s.on
	if s.fired {
		f = nil
	}
	s.fired = true
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// Fired reports whether it has happened.
func (s *Signal) Fired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fired
}

// On calls f once when it happens; immediately if it has happened already. nil removes the last f. Any goroutine may
// call f.
func (s *Signal) On(f func()) {
	s.mu.Lock()
	s.on = f
	fired := s.fired
	s.mu.Unlock()
	if fired && f != nil {
		f()
	}
}
