package calls

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

const (
	// maxHead is the largest head, bytes. A subrequest of a handler has at most 272 KiB (isolates/hostcalls).
	maxHead = 512 << 10
	// maxBody is the longest body that comes as a whole, bytes. Objects are the longest arguments of bindings: 25 MiB.
	maxBody = 32 << 20
	// streams is the size of a body whose end is that of the stream.
	streams = 1<<32 - 1
	// prefixBytes is what comes before a head: its size, and that of the body, each as 4 bytes.
	prefixBytes = 8
)

// head is the beginning of a request or an answer: fields, one after the other. A text is its length and its bytes. A
// number is a varint.
type head []byte

func newHead() head { return make(head, prefixBytes, 256) }

func (h *head) number(n uint64) { *h = binary.AppendUvarint(*h, n) }

func (h *head) text(s string) {
	h.number(uint64(len(s)))
	*h = append(*h, s...)
}

func (h *head) list(texts []string) {
	h.number(uint64(len(texts)))
	for _, s := range texts {
		h.text(s)
	}
}

func (h *head) flag(is bool) {
	if is {
		h.number(1)
	} else {
		h.number(0)
	}
}

// finish returns the head with its prefix. size is that of the body, or streams.
func (h head) finish(size int) ([]byte, error) {
	n := len(h) - prefixBytes
	if n > maxHead || size > maxBody && size != streams {
		return nil, fmt.Errorf("the call has %d bytes and a body of %d: at most %d, and %d", n, size, maxHead, maxBody)
	}
	binary.BigEndian.PutUint32(h, uint32(n))
	binary.BigEndian.PutUint32(h[4:], uint32(size))
	return h, nil
}

// readPrefix reads what comes before a head. The error says which bound is exceeded, or is that of r. size is that of
// the body, or streams.
func readPrefix(r io.Reader) (n, size int, err error) {
	var prefix [prefixBytes]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return 0, 0, err
	}
	n, size = int(binary.BigEndian.Uint32(prefix[:])), int(binary.BigEndian.Uint32(prefix[4:]))
	if n > maxHead {
		return 0, 0, lie("a head has %d bytes: at most %d", n, maxHead)
	}
	if size > maxBody && size != streams {
		return 0, 0, lie("a body has %d bytes: at most %d", size, maxBody)
	}
	return n, size, nil
}

// fields reads the fields of a head. After the first that is malformed, all others are zero.
type fields struct {
	rest []byte
	err  error
}

var errFields = errors.New("a head is malformed")

func (f *fields) fail() { f.rest, f.err = nil, errFields }

func (f *fields) number() uint64 {
	n, size := binary.Uvarint(f.rest)
	if size <= 0 {
		f.fail()
		return 0
	}
	f.rest = f.rest[size:]
	return n
}

// count is a number of at most most.
func (f *fields) count(most int) int {
	n := f.number()
	if n > uint64(most) {
		f.fail()
		return 0
	}
	return int(n)
}

func (f *fields) text() string {
	n := f.number()
	if n > uint64(len(f.rest)) {
		f.fail()
		return ""
	}
	s := string(f.rest[:n])
	f.rest = f.rest[n:]
	return s
}

// list reads a list of texts. What it says of their number has no memory made: each takes a byte at least.
func (f *fields) list() []string {
	n := f.number()
	if n == 0 {
		return nil
	}
	texts := make([]string, 0, min(n, 64))
	for ; n > 0 && f.err == nil; n-- {
		texts = append(texts, f.text())
	}
	return texts
}

func (f *fields) flag() bool { return f.count(1) == 1 }

// end returns an error unless all fields were well-formed and nothing is left.
func (f *fields) end() error {
	if f.err == nil && len(f.rest) > 0 {
		f.fail()
	}
	return f.err
}
