package charset

import (
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// Each of these functions decodes the sequence at the next byte, like the decoder of that name in the Encoding
// standard.

func (d *decoder) shiftJIS() bool {
	if d.ascii() {
		return true
	}
	lead := d.in[d.at]
	switch {
	case lead == 0x80:
		return d.put(0x80, 1)
	case between(lead, 0xa1, 0xdf):
		return d.put(0xff61-0xa1+rune(lead), 1)
	case !between(lead, 0x81, 0x9f) && !between(lead, 0xe0, 0xfc):
		return d.wrong(1)
	}
	trail, ok := d.peek(1)
	if !ok {
		return false
	}
	if !between(trail, 0x40, 0x7e) && !between(trail, 0x80, 0xfc) {
		return d.wrongPair()
	}
	pointer := (int(lead)-int(pick(lead < 0xa0, 0x81, 0xc1)))*188 + int(trail) - int(pick(trail < 0x7f, 0x40, 0x41))
	if 8836 <= pointer && pointer <= 10715 {
		return d.put(0xe000-8836+rune(pointer), 2)
	}
	return d.pair(lookup(jis0208(), pointer))
}

func (d *decoder) eucJP() bool {
	if d.ascii() {
		return true
	}
	lead := d.in[d.at]
	if lead != 0x8e && lead != 0x8f && !between(lead, 0xa1, 0xfe) {
		return d.wrong(1)
	}
	trail, ok := d.peek(1)
	if !ok {
		return false
	}
	if lead == 0x8e && between(trail, 0xa1, 0xdf) {
		return d.put(0xff61-0xa1+rune(trail), 2)
	}
	if lead == 0x8f && between(trail, 0xa1, 0xfe) {
		third, ok := d.peek(2)
		if !ok {
			return false
		}
		if between(third, 0xa1, 0xfe) {
			if r := lookup(jis0212(), (int(trail)-0xa1)*94+int(third)-0xa1); r != 0 {
				return d.put(r, 3)
			}
		}
		if third < 0x80 {
			return d.wrong(2)
		}
		return d.wrong(3)
	}
	if !between(lead, 0xa1, 0xfe) || !between(trail, 0xa1, 0xfe) {
		return d.wrongPair()
	}
	return d.pair(lookup(jis0208(), (int(lead)-0xa1)*94+int(trail)-0xa1))
}

func (d *decoder) eucKR() bool {
	if d.ascii() {
		return true
	}
	lead := d.in[d.at]
	if !between(lead, 0x81, 0xfe) {
		return d.wrong(1)
	}
	trail, ok := d.peek(1)
	if !ok {
		return false
	}
	if !between(trail, 0x41, 0xfe) {
		return d.wrongPair()
	}
	return d.pair(lookup(eucKR(), (int(lead)-0x81)*190+int(trail)-0x41))
}

func (d *decoder) big5() bool {
	if d.ascii() {
		return true
	}
	lead := d.in[d.at]
	if !between(lead, 0x81, 0xfe) {
		return d.wrong(1)
	}
	trail, ok := d.peek(1)
	if !ok {
		return false
	}
	if !between(trail, 0x40, 0x7e) && !between(trail, 0xa1, 0xfe) {
		return d.wrongPair()
	}
	pointer := (int(lead)-0x81)*157 + int(trail) - int(pick(trail < 0x7f, 0x40, 0x62))
	if text := big5Pairs(pointer); text != "" {
		d.Text = append(d.Text, text...)
		d.at += 2
		return true
	}
	return d.pair(lookup(big5(), pointer))
}

// big5Pairs returns the text of the pointers that encode two code points.
func big5Pairs(pointer int) string {
	switch pointer {
	case 1133:
		return "\u00ca\u0304"
	case 1135:
		return "\u00ca\u030c"
	case 1164:
		return "\u00ea\u0304"
	case 1166:
		return "\u00ea\u030c"
	}
	return ""
}

func (d *decoder) gb18030() bool {
	if d.ascii() {
		return true
	}
	first := d.in[d.at]
	if first == 0x80 {
		return d.put(0x20ac, 1)
	}
	if first == 0xff {
		return d.wrong(1)
	}
	second, ok := d.peek(1)
	if !ok {
		return false
	}
	if between(second, 0x30, 0x39) {
		return d.gb18030Four()
	}
	if !between(second, 0x40, 0x7e) && !between(second, 0x80, 0xfe) {
		return d.wrongPair()
	}
	return d.pair(lookup(gb18030(), gbPointer(first, second)))
}

// gb18030Four decodes four bytes. If they are not valid, only the first is wrong, and the others are decoded
// separately.
func (d *decoder) gb18030Four() bool {
	third, ok := d.peek(2)
	if !ok {
		return false
	}
	if !between(third, 0x81, 0xfe) {
		return d.wrong(1)
	}
	fourth, ok := d.peek(3)
	if !ok {
		return false
	}
	if !between(fourth, 0x30, 0x39) {
		return d.wrong(1)
	}
	four := d.in[d.at : d.at+4]
	pointer := ((int(four[0])-0x81)*10+int(four[1])-0x30)*1260 + (int(third)-0x81)*10 + int(fourth) - 0x30
	switch {
	case pointer == 7457:
		return d.put(0xe7c7, 4)
	case pointer == 39417: // U+FFFD itself, which is not an error
		return d.put(utf8.RuneError, 4)
	case pointer > 39419 && pointer < 189000 || pointer > 1237575:
		return d.wrong(4)
	case pointer >= 189000:
		return d.put(0x10000+rune(pointer-189000), 4)
	}
	var out [8]byte
	n, _, err := simplifiedchinese.GB18030.NewDecoder().Transform(out[:], four, true)
	if r, width := utf8.DecodeRune(out[:n]); err == nil && width == n && r != utf8.RuneError {
		return d.put(r, 4)
	}
	return d.wrong(4)
}
