package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Writer appends the fields of a message.
type Writer struct{ b []byte }

// Uint appends a number.
func (w *Writer) Uint(n uint64) { w.b = binary.AppendUvarint(w.b, n) }

// Int appends a number that may be negative.
func (w *Writer) Int(n int64) { w.b = binary.AppendVarint(w.b, n) }

// Bool appends a truth value.
func (w *Writer) Bool(is bool) {
	if is {
		w.b = append(w.b, 1)
	} else {
		w.b = append(w.b, 0)
	}
}

// Bytes appends bytes with their number.
func (w *Writer) Bytes(b []byte) {
	w.Uint(uint64(len(b)))
	w.b = append(w.b, b...)
}

// Text appends a text.
func (w *Writer) Text(s string) {
	w.Uint(uint64(len(s)))
	w.b = append(w.b, s...)
}

// Texts appends a list of texts.
func (w *Writer) Texts(list []string) {
	w.Uint(uint64(len(list)))
	for _, s := range list {
		w.Text(s)
	}
}

// Duration appends a time span.
func (w *Writer) Duration(d time.Duration) { w.Int(int64(d)) }

// Time appends a time, to the nanosecond.
func (w *Writer) Time(t time.Time) {
	w.Bool(!t.IsZero())
	if !t.IsZero() {
		w.Int(t.UnixNano())
	}
}

// errShort says that a message ends before its fields do, or names more bytes than it has.
var errShort = errors.New("the message is too short for its fields")

// Reader takes the fields of a message, in the order in which a Writer appended them. After an error all fields are
// zero. What it returns is valid until the next frame is read, unless a method says otherwise.
type Reader struct {
	b   []byte
	err error
}

// NewReader returns a Reader of a message.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Fail notes an error, unless there is one already.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err, r.b = err, nil
	}
}

// Err returns the error of the fields that were taken.
func (r *Reader) Err() error { return r.err }

// Done returns the error of all fields. Bytes that no field took are one.
func (r *Reader) Done() error {
	if r.err == nil && len(r.b) > 0 {
		r.Fail(fmt.Errorf("the message has %d bytes too many", len(r.b)))
	}
	return r.err
}

// Uint takes a number.
func (r *Reader) Uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.Fail(errShort)
		return 0
	}
	r.b = r.b[size:]
	return n
}

// Int takes a number that may be negative.
func (r *Reader) Int() int64 {
	n, size := binary.Varint(r.b)
	if size <= 0 {
		r.Fail(errShort)
		return 0
	}
	r.b = r.b[size:]
	return n
}

// Number takes a number from lo to hi.
func (r *Reader) Number(lo, hi int64) int64 {
	n := r.Int()
	if r.err == nil && (n < lo || n > hi) {
		r.Fail(fmt.Errorf("a number is %d: it is %d to %d", n, lo, hi))
	}
	if r.err != nil {
		return lo
	}
	return n
}

// Bool takes a truth value.
func (r *Reader) Bool() bool {
	if len(r.b) == 0 || r.b[0] > 1 {
		r.Fail(errShort)
		return false
	}
	is := r.b[0] == 1
	r.b = r.b[1:]
	return is
}

// Bytes takes bytes. They are a part of the frame: whoever keeps them copies them.
func (r *Reader) Bytes() []byte {
	n := r.Uint()
	if n > uint64(len(r.b)) {
		r.Fail(errShort)
		return nil
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

// Text takes a text, which stays valid.
func (r *Reader) Text() string { return string(r.Bytes()) }

// Texts takes a list of texts, which stay valid; nil if it is empty. They share memory.
func (r *Reader) Texts() []string {
	n := r.Uint()
	if n > uint64(len(r.b)) { // each has a byte at least
		r.Fail(errShort)
	}
	if r.err != nil || n == 0 {
		return nil
	}
	from := r.b
	list, sizes := make([]string, n), 0
	for range list {
		r.Bytes()
	}
	if r.err != nil {
		return nil
	}
	all := string(from[:len(from)-len(r.b)])
	for i := range list {
		size, head := binary.Uvarint(from[sizes:])
		sizes += head
		list[i] = all[sizes : sizes+int(size)]
		sizes += int(size)
	}
	return list
}

// Duration takes a time span from 0 to most.
func (r *Reader) Duration(most time.Duration) time.Duration {
	return time.Duration(r.Number(0, int64(most)))
}

// Time takes a time.
func (r *Reader) Time() time.Time {
	if !r.Bool() {
		return time.Time{}
	}
	return time.Unix(0, r.Int())
}
