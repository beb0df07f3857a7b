package events

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Requester is whoever waits for an event's reply and takes its body in chunks (docs/wire.md, "Bodies in chunks").
type Requester struct {
	// Credit is how many bytes of the body it takes before it is asked again, at least 1.
	Credit int64

	gone Signal
}

// Gone says that it does not wait any more. From any goroutine.
func (r *Requester) Gone() { r.gone.Fire() }

// OnGone has f called once when the requester has gone, at once if it has already; nil takes the last f back. f may be
// called from any goroutine.
func (r *Requester) OnGone(f func()) { r.gone.On(f) }

// Parts is the body of a fetch event that was stored apart, in parts (docs/wire.md, "Request bodies in parts").
type Parts struct {
	ID string
	N  int // parts, at least 1; 0 when the body is Live
	// Live: parts come while the event runs, and how many they are is known when the last is there.
	Live bool

	// Read gets part i, 0 <= i < N; of a live body that part once it has come, or io.EOF when there are no more than i. It blocks; from any goroutine.
	Read func(ctx context.Context, i int) ([]byte, error)
}

// LiveParts is the value of HeaderBodyParts of a live body.
const LiveParts = "*"

// EndPart is the number of the part of a live body that says how many there are.
const EndPart = -1

// ErrGivenUp is the error of a live body of which its sender has said that it will not be complete.
var ErrGivenUp = errors.New("its sender gave it up")

// maxEnd is the longest reason, in bytes, that the end of a live body may give.
const maxEnd = 256

// EncodeEnd makes the body of the end of a live body that has n parts.
func EncodeEnd(n int) []byte { return strconv.AppendInt(nil, int64(n), 10) }

// EncodeBreak makes the body of the end of a live body that is not complete: it says why.
func EncodeBreak(why string) []byte {
	return []byte("!" + strings.ToValidUTF8(why[:min(len(why), maxEnd-1)], ""))
}

// DecodeEnd reads the body of the end of a live body. The error says why it is not complete, or that this cannot be known.
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

// BodyRead is the message to an event's Reply-To that tells the sender of a live body that the handler has taken n parts so far.
func BodyRead(eventID string, n int) Header {
	return Header{HeaderEventID: {eventID}, HeaderBodyRead: {strconv.Itoa(n)}}
}

// maxParts is the most parts a body may have.
const maxParts = 1 << 20

// Chunk is a piece of a reply's body, or its end.
type Chunk struct {
	Data    []byte
	End     bool     // the body is complete with this
	Failure *Failure // the body ends here, incomplete; nothing follows
	Waits   bool     // there is more, which waits for a grant; Data is empty
}

// joined is how long chunks get that are joined because nobody has taken them yet, in bytes.
const joined = 64 << 10

// join adds c to the chunk before it, if both are plain data and short.
func (before *Chunk) join(c Chunk) bool {
	if c.End || c.Failure != nil || c.Waits || before.Waits || len(before.Data)+len(c.Data) > joined {
		return false
	}
	before.Data = append(before.Data, c.Data...)
	return true
}

// Stream is the rest of a reply's body: whoever makes it pushes chunks, whoever publishes it takes them and says how much may
// follow. Nothing is pushed beyond what was granted, so it holds no more than that.
type Stream struct {
	// Grant lets the body go on up to that many bytes in all. Cancel ends it. Both may be called from any goroutine.
	Grant  func(upTo int64)
	Cancel func(why string)

	mu     sync.Mutex
	chunks []Chunk
	notify func()
	told   bool // that there are chunks to take
}

// Push adds a chunk, whose Data is the Stream's from then on. From any goroutine. Short chunks that nobody has taken yet become one.
func (s *Stream) Push(c Chunk) {
	s.mu.Lock()
	if last := len(s.chunks) - 1; last < 0 || !s.chunks[last].join(c) {
		s.chunks = append(s.chunks, c)
	}
	f := s.tell()
	s.mu.Unlock()
	if f != nil {
		f()
	}
}

// tell is what to call because there are chunks to take; nil when whoever takes them knows. The lock is held.
func (s *Stream) tell() func() {
	if s.told || s.notify == nil || len(s.chunks) == 0 {
		return nil
	}
	s.told = true
	return s.notify
}

// OnChunks has f called when there are chunks to Take, at once if there are some; then not again before they are taken.
func (s *Stream) OnChunks(f func()) {
	s.mu.Lock()
	s.notify, s.told = f, false
	f = s.tell()
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
	s.chunks, s.told = nil, false
	return chunks
}

// Headers of a body in chunks.
const (
	HeaderBodyCredit = "Body-Credit" // request: bytes that the requester takes; reply: the subject to grant more on
	HeaderBodySeq    = "Body-Seq"    // 0 for the reply itself, then 1, 2, …
	HeaderBodyEnd    = "Body-End"    // on the last chunk: bytes of the whole body
	HeaderBodyError  = "Body-Error"  // on the last chunk of a body that broke off: "reason: message"
	HeaderBodyID     = "Body-Id"     // request: name of the body's parts
	HeaderBodyParts  = "Body-Parts"  // request: how many there are; LiveParts: they come while the event runs
	HeaderBodyRead   = "Body-Read"   // to Reply-To, no reply: how many parts of a live body the handler has taken
)

// EncodeChunk makes the headers of the message of a chunk, whose body is c.Data. total is the bytes of the body with it.
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

// DecodeChunk reads such a message. before is how many bytes came in the chunks before it. The error says what is not as the
// contract wants it: a chunk that is missing shows as one.
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

// GoneCredit is what a requester publishes on the credit subject when it takes no more.
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
