package v8x

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// Tags of encoded values; codec.h has the format.
const (
	tagNull    = 0
	tagTrue    = 1
	tagFalse   = 2
	tagNumber  = 3
	tagString  = 4
	tagBytes   = 5
	tagList    = 6
	tagBody    = 7
	tagContent = 8
)

// Call encodes a call of the entry function, or an answer to host.ask. It may be Reset and used again.
type Call struct{ buf []byte }

// Reset begins a call of the given op.
func (c *Call) Reset(op int) *Call {
	c.buf = append(c.buf[:0], 0)
	return c.Number(float64(op))
}

// Bytes returns the encoded call.
func (c *Call) Bytes() []byte { return c.buf }

func (c *Call) arg(tag byte) {
	c.buf[0]++
	c.buf = append(c.buf, tag)
}

// Null adds null.
func (c *Call) Null() *Call { c.arg(tagNull); return c }

// Bool adds a boolean.
func (c *Call) Bool(v bool) *Call {
	if v {
		c.arg(tagTrue)
	} else {
		c.arg(tagFalse)
	}
	return c
}

// Number adds a number.
func (c *Call) Number(v float64) *Call {
	c.arg(tagNumber)
	c.buf = binary.LittleEndian.AppendUint64(c.buf, math.Float64bits(v))
	return c
}

// String adds a string; invalid UTF-8 in it becomes U+FFFD.
func (c *Call) String(s string) *Call {
	c.arg(tagString)
	c.buf = appendText(c.buf, s)
	return c
}

// Blob adds bytes, copied into the call. For a large body use Body.
func (c *Call) Blob(b []byte) *Call {
	c.arg(tagBytes)
	c.buf = append(binary.LittleEndian.AppendUint32(c.buf, uint32(len(b))), b...)
	return c
}

// Body adds the body that is passed to Context.Call with the call.
func (c *Call) Body() *Call { c.arg(tagBody); return c }

// Content adds the body that is passed to Context.Call with the call. JavaScript gets a string if that has the same
// bytes (ASCII, at most 1 MiB), otherwise a Uint8Array.
func (c *Call) Content() *Call { c.arg(tagContent); return c }

// Strings adds a list of strings.
func (c *Call) Strings(list []string) *Call {
	c.arg(tagList)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(list)))
	for _, s := range list {
		c.buf = appendText(append(c.buf, tagString), s)
	}
	return c
}

// Raw adds a value that is already encoded: the result of an Answer function.
func (c *Call) Raw(answer []byte) *Call {
	c.buf[0]++
	c.buf = append(c.buf, answer...)
	return c
}

// Numbers adds a list of numbers.
func (c *Call) Numbers(list ...float64) *Call {
	c.arg(tagList)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, uint32(len(list)))
	for _, n := range list {
		c.buf = binary.LittleEndian.AppendUint64(append(c.buf, tagNumber), math.Float64bits(n))
	}
	return c
}

func appendText(b []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
}

// AnswerNull encodes null as an answer to host.ask.
func AnswerNull() []byte { return []byte{tagNull} }

// AnswerBool encodes a boolean as an answer.
func AnswerBool(v bool) []byte {
	if v {
		return []byte{tagTrue}
	}
	return []byte{tagFalse}
}

// AnswerString encodes a string as an answer.
func AnswerString(s string) []byte { return appendText([]byte{tagString}, s) }

// AnswerBytes encodes a Uint8Array as an answer.
func AnswerBytes(b []byte) []byte {
	return append(binary.LittleEndian.AppendUint32([]byte{tagBytes}, uint32(len(b))), b...)
}

// AnswerTexts encodes a list of strings as an answer.
func AnswerTexts(list ...string) []byte {
	out := binary.LittleEndian.AppendUint32([]byte{tagList}, uint32(len(list)))
	for _, s := range list {
		out = appendText(append(out, tagString), s)
	}
	return out
}

// AnswerList encodes a list of Uint8Arrays as an answer.
func AnswerList(list ...[]byte) []byte {
	out := binary.LittleEndian.AppendUint32([]byte{tagList}, uint32(len(list)))
	for _, b := range list {
		out = append(binary.LittleEndian.AppendUint32(append(out, tagBytes), uint32(len(b))), b...)
	}
	return out
}

// Commands reads the commands that host.send wrote. Each Next starts a command, whose arguments are then read in order.
// After the first malformed value, Err is not nil and all further values are zero.
type Commands struct {
	in   []byte
	args int // arguments of the current command that are not yet read
	err  error
}

// ReadCommands starts to read Result.Out, or the input of a HostFunc.
func ReadCommands(out []byte) Commands { return Commands{in: out} }

// Len returns how many bytes of input are left.
func (c *Commands) Len() int { return len(c.in) }

// Err returns the first error in the input, if any. Only a mistake in the runtime can cause one.
func (c *Commands) Err() error { return c.err }

// Next skips the rest of the current command and returns the op of the next; ok is false at the end.
func (c *Commands) Next() (op int, ok bool) {
	for c.args > 0 && c.err == nil {
		c.Skip()
	}
	if c.err != nil || len(c.in) == 0 {
		return 0, false
	}
	head := c.take(2)
	if head == nil {
		return 0, false
	}
	c.args = int(head[1])
	return int(head[0]), true
}

var errTruncated = errors.New("v8x: truncated command")

func (c *Commands) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.in) {
		c.fail(errTruncated)
		return nil
	}
	b := c.in[:n]
	c.in = c.in[n:]
	return b
}

func (c *Commands) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.in, c.args = nil, 0
}

// tag starts a value; missing arguments read as null.
func (c *Commands) tag() byte {
	if c.args == 0 {
		return tagNull
	}
	c.args--
	if b := c.take(1); b != nil {
		return b[0]
	}
	return tagNull
}

func (c *Commands) length() int {
	if b := c.take(4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// Number reads a number; anything else is 0.
func (c *Commands) Number() float64 {
	t := c.tag()
	if t != tagNumber {
		c.skip(t, 0)
		return 0
	}
	if b := c.take(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// Int reads a number that is an integer.
func (c *Commands) Int() int64 { return int64(c.Number()) }

// Bool reads a boolean; anything but true is false.
func (c *Commands) Bool() bool {
	t := c.tag()
	c.skip(t, 0)
	return t == tagTrue
}

// Text reads a string; bytes count as its UTF-8, anything else is "".
func (c *Commands) Text() string { return string(c.View()) }

// Clip reads a string and returns at most most bytes of it.
func (c *Commands) Clip(most int) string {
	b := c.View()
	if len(b) > most {
		b = b[:most]
		for len(b) > 0 && !utf8.RuneStart(b[len(b)-1]) {
			b = b[:len(b)-1]
		}
		b = b[:max(0, len(b)-1)]
	}
	return string(b)
}

// View reads a string's UTF-8, or bytes, without copying: the result is valid as long as the input is. null is nil.
func (c *Commands) View() []byte {
	t := c.tag()
	if t != tagString && t != tagBytes {
		c.skip(t, 0)
		return nil
	}
	return c.take(c.length())
}

// Kept has short strings that were read before. A string that comes again, like the name of a header, takes no new
// memory. The zero Kept is ready to use. It has at most keptStrings strings. It is for one goroutine.
type Kept struct{ strings map[string]string }

const (
	keptStrings = 512
	keptString  = 64 // longest string, in bytes
)

func (k *Kept) text(b []byte) string {
	if k == nil || len(b) > keptString {
		return string(b)
	}
	if s, ok := k.strings[string(b)]; ok {
		return s
	}
	if k.strings == nil || len(k.strings) == keptStrings {
		k.strings = make(map[string]string)
	}
	s := string(b)
	k.strings[s] = s
	return s
}

// Strings reads a list of strings.
func (c *Commands) Strings() []string { return c.KeptStrings(nil) }

// KeptStrings reads a list of strings. It takes strings from k if k has them.
func (c *Commands) KeptStrings(k *Kept) []string {
	t := c.tag()
	if t != tagList {
		c.skip(t, 0)
		return nil
	}
	n := c.length()
	if n == 0 || n > len(c.in) {
		return nil
	}
	list := make([]string, 0, n)
	for range n {
		if b := c.take(1); b == nil || b[0] != tagString {
			c.fail(fmt.Errorf("v8x: list of strings has something else in it"))
			return nil
		}
		list = append(list, k.text(c.take(c.length())))
	}
	return list
}

// Detach returns a copy of the arguments of the current command that are not read yet. They remain valid after the
// input is gone.
func (c *Commands) Detach() Commands {
	from, args := c.in, c.args
	for c.args > 0 && c.err == nil {
		c.Skip()
	}
	return Commands{in: bytes.Clone(from[:len(from)-len(c.in)]), args: args, err: c.err}
}

// Left returns how many bytes the arguments of the current command take that are not read yet.
func (c *Commands) Left() int {
	rest := *c
	for rest.args > 0 && rest.err == nil {
		rest.Skip()
	}
	return len(c.in) - len(rest.in)
}

// Size returns how many bytes the next argument takes.
func (c *Commands) Size() int {
	rest := *c
	rest.Skip()
	return len(c.in) - len(rest.in)
}

// Skip skips one argument.
func (c *Commands) Skip() { c.skip(c.tag(), 0) }

func (c *Commands) skip(tag byte, depth int) {
	switch tag {
	case tagNull, tagTrue, tagFalse:
	case tagNumber:
		c.take(8)
	case tagString, tagBytes:
		c.take(c.length())
	case tagList:
		if depth > 4 {
			c.fail(errors.New("v8x: list too deep"))
			return
		}
		for n := c.length(); n > 0 && c.err == nil; n-- {
			if b := c.take(1); b != nil {
				c.skip(b[0], depth+1)
			}
		}
	default:
		c.fail(fmt.Errorf("v8x: unknown tag %d", tag))
	}
}
