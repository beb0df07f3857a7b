package charset

const iso2022JP = "iso-2022-jp"

// The states of ISO-2022-JP's decoder. The State of a stream packs four values: the current state, the output state,
// whether there was output since the last escape sequence, and the lead byte that waits. The zero value of each is the
// start of a stream.
const (
	jpASCII = iota
	jpRoman
	jpKatakana
	jpLead
	jpTrail
	jpEscapeStart
	jpEscape
)

type jpState struct {
	in, out int
	output  bool
	lead    byte
}

func unpackJP(s int) jpState {
	return jpState{in: s & 7, out: s >> 3 & 7, output: s>>6&1 == 1, lead: byte(s >> 7 & 0x7f)}
}

func (s jpState) pack() int {
	n := s.in | s.out<<3 | int(s.lead)<<7
	if s.output {
		n |= 1 << 6
	}
	return n
}

// iso2022JP decodes a byte.
func (d *decoder) iso2022JP() bool {
	s := unpackJP(d.state)
	b := d.in[d.at]
	switch s.in {
	case jpEscapeStart:
		s = d.jpEscapeStart(s, b)
	case jpEscape:
		s = d.jpEscape(s, b)
	case jpTrail:
		s = d.jpTrail(s, b)
	default:
		s = d.jpPlain(s, b)
	}
	d.state = s.pack()
	return true
}

// jpPlain handles the states ASCII, Roman, katakana and lead byte.
func (d *decoder) jpPlain(s jpState, b byte) jpState {
	if b == 0x1b {
		s.in = jpEscapeStart
		d.at++
		return s
	}
	s.output = false
	switch {
	case s.in == jpRoman && b == 0x5c:
		d.put(0xa5, 1)
	case s.in == jpRoman && b == 0x7e:
		d.put(0x203e, 1)
	case (s.in == jpASCII || s.in == jpRoman) && b < 0x80 && b != 0x0e && b != 0x0f:
		d.put(rune(b), 1)
	case s.in == jpKatakana && between(b, 0x21, 0x5f):
		d.put(0xff61-0x21+rune(b), 1)
	case s.in == jpLead && between(b, 0x21, 0x7e):
		s.lead, s.in = b, jpTrail
		d.at++
	default:
		d.wrong(1)
	}
	return s
}

func (d *decoder) jpTrail(s jpState, b byte) jpState {
	switch {
	case b == 0x1b:
		s.in = jpEscapeStart
		d.wrong(1)
	case between(b, 0x21, 0x7e):
		s.in = jpLead
		if r := lookup(jis0208(), (int(s.lead)-0x21)*94+int(b)-0x21); r != 0 {
			d.put(r, 1)
		} else {
			d.wrong(1)
		}
	default:
		s.in = jpLead
		d.wrong(1)
	}
	return s
}

func (d *decoder) jpEscapeStart(s jpState, b byte) jpState {
	if b == 0x24 || b == 0x28 {
		s.lead, s.in = b, jpEscape
		d.at++
		return s
	}
	s.output, s.in = false, s.out
	d.wrong(0)
	return s
}

func (d *decoder) jpEscape(s jpState, b byte) jpState {
	lead := s.lead
	s.lead = 0
	state := -1
	switch {
	case lead == 0x28 && b == 0x42:
		state = jpASCII
	case lead == 0x28 && b == 0x4a:
		state = jpRoman
	case lead == 0x28 && b == 0x49:
		state = jpKatakana
	case lead == 0x24 && (b == 0x40 || b == 0x42):
		state = jpLead
	}
	if state >= 0 {
		before := s.output
		s.in, s.out, s.output = state, state, true
		if before {
			d.wrong(1)
		} else {
			d.at++
		}
		return s
	}
	s.output, s.in = false, s.out
	d.wrong(0)
	// The lead is decoded separately in the output state, and then the byte.
	return d.jpAgain(s, lead)
}

// jpAgain decodes a byte that was taken for the middle of an escape sequence.
func (d *decoder) jpAgain(s jpState, b byte) jpState {
	at := d.at
	if s.in == jpTrail { // cannot happen: s.out is an output state
		return s
	}
	s = d.jpPlain(s, b)
	d.at = at
	return s
}

// endJP handles the end of the stream.
func (d *decoder) endJP() {
	s := unpackJP(d.state)
	switch s.in {
	case jpTrail:
		d.wrong(0)
	case jpEscapeStart:
		d.wrong(0)
	case jpEscape:
		lead := s.lead
		s.output, s.in, s.lead = false, s.out, 0
		d.wrong(0)
		if s = d.jpAgain(s, lead); s.in == jpTrail {
			d.wrong(0)
		}
	}
	d.state = 0
}
