package charset

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// Result is the result of decoding a piece of a stream.
type Result struct {
	Text  []byte // UTF-8
	Rest  int    // number of incomplete bytes at the end of the piece: pass them again before the next piece
	State int    // to pass with the next piece; 0 starts a stream
	Wrong bool   // something was not valid and became U+FFFD
}

// decoder is a piece that is being decoded.
type decoder struct {
	in    []byte
	at    int  // index of the next byte
	last  bool // nothing follows in
	state int
	Result
}

// Decode decodes a piece of a stream. encoding is a name of the Encoding standard, in lower case. last says that
// nothing follows.
func Decode(encoding string, state int, in []byte, last bool) (Result, error) {
	step, err := stepper(encoding)
	if err != nil {
		return Result{}, err
	}
	d := &decoder{in: in, last: last, state: state}
	d.Text = make([]byte, 0, len(in)+len(in)/2+utf8.UTFMax)
	for d.at < len(d.in) {
		if !step(d) {
			break
		}
	}
	if last && encoding == iso2022JP {
		d.endJP()
	}
	d.Rest = len(d.in) - d.at
	if last && d.Rest > 0 {
		d.wrong(d.Rest)
		d.Rest = 0
	}
	d.State = d.state
	return d.Result, nil
}

// stepper returns the function that decodes the sequence at the next byte. The function returns false if the sequence
// is incomplete.
func stepper(encoding string) (func(*decoder) bool, error) {
	if table := singleByte(encoding); table != nil {
		return func(d *decoder) bool { return d.single(table) }, nil
	}
	switch encoding {
	case "gbk", "gb18030":
		return (*decoder).gb18030, nil
	case "big5":
		return (*decoder).big5, nil
	case "euc-jp":
		return (*decoder).eucJP, nil
	case iso2022JP:
		return (*decoder).iso2022JP, nil
	case "shift_jis":
		return (*decoder).shiftJIS, nil
	case "euc-kr":
		return (*decoder).eucKR, nil
	}
	return nil, fmt.Errorf("unknown encoding %q", encoding)
}

// Known reports whether Decode knows an encoding.
func Known(encoding string) bool {
	_, err := stepper(encoding)
	return err == nil
}

// put ends a sequence of n bytes that encodes the character r.
func (d *decoder) put(r rune, n int) bool {
	d.Text = utf8.AppendRune(d.Text, r)
	d.at += n
	return true
}

// wrong ends a sequence of n bytes that encodes no character.
func (d *decoder) wrong(n int) bool {
	d.Wrong = true
	return d.put(utf8.RuneError, n)
}

// wrongPair ends two bytes that encode no character. If the second is ASCII, it is decoded separately.
func (d *decoder) wrongPair() bool {
	if d.in[d.at+1] < 0x80 {
		return d.wrong(1)
	}
	return d.wrong(2)
}

// peek returns the nth byte, counted from the next one. ok is false if it has not come yet.
func (d *decoder) peek(n int) (b byte, ok bool) {
	if d.at+n >= len(d.in) {
		return 0, false
	}
	return d.in[d.at+n], true
}

// pair ends two bytes that encode the character r, or no character if r is 0.
func (d *decoder) pair(r rune) bool {
	if r == 0 {
		return d.wrongPair()
	}
	return d.put(r, 2)
}

// ascii takes all ASCII bytes from the next byte on. It returns false if there is none.
func (d *decoder) ascii() bool {
	n := slices.IndexFunc(d.in[d.at:], func(b byte) bool { return b >= 0x80 })
	if n < 0 {
		n = len(d.in) - d.at
	}
	d.Text = append(d.Text, d.in[d.at:d.at+n]...)
	d.at += n
	return n > 0
}

func (d *decoder) single(table *[128]rune) bool {
	if d.ascii() {
		return true
	}
	if r := table[d.in[d.at]-0x80]; r != 0 {
		return d.put(r, 1)
	}
	return d.wrong(1)
}

func between(b, low, high byte) bool { return low <= b && b <= high }
