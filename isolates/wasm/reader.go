package wasm

import (
	"fmt"
	"unicode/utf8"
)

// reader reads the bytes of a module from at to end. The first thing that is wrong stays in err; after it, all reads
// return zero and nothing is left to read.
type reader struct {
	b   []byte
	at  int
	end int // of the section or body that is being read
	err *Error
}

// fail records what is wrong at an offset.
func (r *reader) fail(at int, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{Offset: at, Reason: fmt.Sprintf(format, args...)}
	}
	r.at = r.end
}

// refuse records what is beyond a bound, or a feature that is not supported.
func (r *reader) refuse(at int, format string, args ...any) {
	if r.err == nil {
		r.fail(at, format, args...)
		r.err.Bound = true
	}
}

// atMost refuses a number beyond its bound. What names the thing that is counted.
func (r *reader) atMost(at int, what string, n, most int64) bool {
	if n > most {
		r.refuse(at, "%s: %d, at most %d allowed", what, n, most)
	}
	return n <= most && r.err == nil
}

func (r *reader) more() bool { return r.at < r.end }

func (r *reader) byte() byte {
	if r.at >= r.end {
		r.fail(r.at, "ends in the middle")
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// skip passes over bytes that mean nothing here.
func (r *reader) skip(n int) {
	if n > r.end-r.at {
		r.fail(r.at, "%d bytes follow, %d are left", n, r.end-r.at)
		return
	}
	r.at += n
}

// u32 reads an unsigned LEB128 number of at most 5 bytes. Compilers pad them, so that a shorter form may exist.
func (r *reader) u32() uint32 {
	if r.at < r.end && r.b[r.at] < 0x80 {
		r.at++
		return uint32(r.b[r.at-1])
	}
	at, n := r.at, uint64(0)
	for shift := 0; ; shift += 7 {
		c := r.byte()
		n |= uint64(c&0x7f) << shift
		if r.err != nil {
			return 0
		}
		if shift == 28 && c > 0x0f {
			r.fail(at, "a number of more than 32 bits")
			return 0
		}
		if c < 0x80 {
			return uint32(n)
		}
	}
}

// signed reads a signed LEB128 number of so many bits: 32, 33 or 64.
func (r *reader) signed(bits int) int64 {
	at, n := r.at, int64(0)
	for shift := 0; ; shift += 7 {
		c := r.byte()
		n |= int64(c&0x7f) << shift
		if r.err != nil {
			return 0
		}
		if left := bits - shift; left <= 7 {
			// All bits beyond the number are copies of its sign.
			if rest := int8(c<<1) >> left; c >= 0x80 || rest != 0 && rest != -1 {
				r.fail(at, "a number of more than %d bits", bits)
				return 0
			}
		}
		if c < 0x80 {
			if c&0x40 != 0 && shift+7 < 64 {
				n |= -1 << (shift + 7)
			}
			return n
		}
	}
}

// count reads how many things follow, each of which has at least one byte.
func (r *reader) count(what string, most int) int {
	at := r.at
	n := r.u32()
	if !r.atMost(at, what, int64(n), int64(most)) {
		return 0
	}
	if int(n) > r.end-r.at {
		r.fail(at, "%s: %d, but %d bytes are left", what, n, r.end-r.at)
		return 0
	}
	return int(n)
}

// name reads a name in UTF-8.
func (r *reader) name() string {
	at := r.at
	n := r.count("bytes of a name", MaxName)
	name := r.b[r.at : r.at+n]
	r.skip(n)
	if !utf8.Valid(name) {
		r.fail(at, "a name that is not UTF-8")
	}
	return string(name)
}
