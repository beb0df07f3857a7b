package rewriter

import (
	"errors"
	"unicode/utf8"
)

// The kinds of records. A record is numbers: its kind, where its token begins and ends in the bytes of the step, and
// what the constants say.
const (
	recordElement = 1 // flags, id, name, number of entries, entries, number of attributes, attributes: name, value, end
	recordEnd     = 2 // name, number of ids, ids: of the elements that the end tag closes, the outermost first
	recordText    = 3 // 1 = the text node ends here, number of entries, entries
	recordComment = 4 // its text, number of entries, entries
	recordDoctype = 5 // name, public and system identifier; -1 = there is none
)

// Flags of a recordElement. The namespace follows from flagSpace on.
const (
	flagContent    = 1 // it has content and an end tag
	flagSelfClosed = 2 // it has none, and is written so
	flagSpace      = 4
)

const (
	// MaxPiece is the largest piece of a page that a step takes, in bytes.
	MaxPiece = 256 << 10
	// Memory is what a Stream holds at most between steps: the bytes of a token and of a piece, the stack, the records of
	// a step, a short value in lower case, and the selectors.
	Memory = 2*(MaxToken+MaxPiece) + MaxStack + 4*maxNumbers + often + selectorMemory
	// Records is what the records of a step take at most that are copied.
	Records = 4 * (maxNumbers + 8*MaxAttributes)

	maxNumbers = 64 << 10 // of the records of a step, after which the next step goes on
	often      = 1 << 16  // bytes and tests between two looks whether the work may go on
)

// Stream is a page on its way through a rewriter.
type Stream struct {
	m       *matcher
	scan    scanner
	foreign foreign
	buffer  []byte // from here on bytes of the page are not passed on yet
	at      int    // where buffer is read
	ended   bool

	records []int32
	base    int // where the bytes of the step begin in buffer
	id      int32
	text    span // text of the step that has no record yet
	inText  bool // a text node with handlers is open
	name    []byte
	ids     []int32
	spent   int
}

// New begins a page. handlers has what is asked for with each of the selectors, and those of the document.
func New(selectors []string, handlers []Handlers) (*Stream, error) {
	p, err := compile(selectors, handlers)
	if err != nil {
		return nil, err
	}
	return &Stream{m: newMatcher(p)}, nil
}

// Tests is how many tests an element may need.
func (s *Stream) Tests() int { return s.m.parts }

// Held is how many bytes wait for more.
func (s *Stream) Held() int { return len(s.buffer) - s.at }

var errPiece = errors.New("a piece of the page is too large")

// Step takes a piece of the page. It returns the bytes that are passed on, and the records of their tokens, which are
// valid until the next step. more says that the input so far has more: Step is to be called with nothing. last says
// that no more of the page follows. goOn is called from time to time, and its error ends the work.
func (s *Stream) Step(in []byte, last bool, goOn func() error) (out []byte, records []int32, more bool, err error) {
	if len(in) > MaxPiece || len(in) > 0 && s.ended {
		return nil, nil, false, errPiece
	}
	s.ended = s.ended || last
	s.m.el.goOn = goOn
	s.fill(in)
	s.records, s.base, s.text.from = s.records[:0], s.at, -1
	for {
		if len(s.records) > maxNumbers {
			more = true
			break
		}
		if s.spent > often {
			s.spent = 0
			if err := goOn(); err != nil {
				return nil, nil, false, err
			}
		}
		ok, err := s.token()
		if err != nil {
			return nil, nil, false, err
		}
		if !ok {
			break
		}
	}
	s.flushText(false)
	if cap(s.m.el.low) > often {
		s.m.el.low = nil
	}
	return s.buffer[s.base:s.at], s.records, more, nil
}

// fill adds a piece to the buffer. What is moved to its beginning is less than what was read since.
func (s *Stream) fill(in []byte) {
	if s.at >= len(s.buffer)-s.at {
		s.buffer = append(s.buffer[:0], s.buffer[s.at:]...)
		s.at = 0
	}
	s.buffer = append(s.buffer, in...)
}

// token reads a token. It returns false if there is none, or only the beginning of one.
func (s *Stream) token() (bool, error) {
	rest := s.buffer[s.at:]
	kind, size, err := s.scan.next(rest, s.ended)
	if err != nil {
		return false, err
	}
	if kind == noToken {
		if s.ended && len(rest) == 0 {
			s.flushText(true)
		}
		return false, nil
	}
	raw := rest[:size]
	s.spent += size
	if kind == textToken {
		return s.addText(raw), nil
	}
	s.flushText(true)
	at := int32(s.at - s.base)
	switch kind {
	case startToken:
		err = s.start(raw, at)
	case endToken:
		s.end(raw, at)
	case commentToken:
		if s.m.comments.total > 0 || s.m.document&Comments != 0 {
			s.record(recordComment, at, size).add(at+s.scan.body.from, at+s.scan.body.to).list(s.m.comments.list())
		}
	case doctypeToken:
		if s.m.document&Doctypes != 0 {
			r := s.record(recordDoctype, at, size)
			for _, part := range doctype(raw) {
				r.span(part, at)
			}
		}
	}
	s.at += size
	return true, err
}

// addText reads text. It returns false if that waits for the rest of a character.
func (s *Stream) addText(raw []byte) bool {
	if s.m.text.total == 0 && s.m.document&Text == 0 {
		s.at += len(raw)
		return true
	}
	size := len(raw)
	if !s.ended && s.at+size == len(s.buffer) {
		if size -= incomplete(raw); size == 0 {
			return false
		}
	}
	at := int32(s.at - s.base)
	if s.text.from < 0 {
		s.text.from = at
	}
	s.text.to = at + int32(size)
	s.at += size
	s.inText = true
	return size == len(raw)
}

// incomplete returns how many bytes at the end of text are the beginning of a character.
func incomplete(text []byte) int {
	for n := 1; n <= min(3, len(text)); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// flushText makes the record of text that was read. end: the text node ends here.
func (s *Stream) flushText(end bool) {
	if !s.inText || s.text.from < 0 && !end {
		return
	}
	at := int32(s.at - s.base)
	part := span{at, at}
	if s.text.from >= 0 {
		part = s.text
	}
	s.text.from = -1
	var is int32
	if end {
		is, s.inText = 1, false
	}
	s.record(recordText, part.from, int(part.to-part.from)).add(is).list(s.m.text.list())
}

// record begins a record.
func (s *Stream) record(kind, at int32, size int) *Stream { return s.add(kind, at, at+int32(size)) }

func (s *Stream) add(numbers ...int32) *Stream {
	s.records = append(s.records, numbers...)
	return s
}

func (s *Stream) list(entries []int) *Stream {
	s.add(int32(len(entries)))
	for _, entry := range entries {
		s.add(int32(entry))
	}
	return s
}

func (s *Stream) span(part span, at int32) {
	if part.from < 0 {
		s.add(-1, -1)
		return
	}
	s.add(at+part.from, at+part.to)
}

// lowerName returns the name of the tag in lower case.
func (s *Stream) lowerName(raw []byte) []byte {
	s.name = append(s.name[:0], s.scan.tag.name.of(raw)...)
	for i, c := range s.name {
		if c >= 'A' && c <= 'Z' {
			s.name[i] = c + 'a' - 'A'
		}
	}
	return s.name
}

func (s *Stream) start(raw []byte, at int32) error {
	t := &s.scan.tag
	name := s.lowerName(raw)
	mode, err := s.foreign.start(name, raw, t)
	if err != nil {
		return err
	}
	space := s.foreign.current()
	s.scan.cdata = space != html
	if s.scan.mode = mode; mode == rawText || mode == scriptText {
		s.scan.rawName = string(name)
	}
	if len(s.m.entries) == 0 { // nobody asks what is open
		return nil
	}
	if err := s.m.start(name, raw, t); err != nil {
		return err
	}
	s.spent += 8*(s.m.tests+len(s.m.found)) + s.m.el.examined
	s.m.tests, s.m.el.examined = 0, 0
	content := space == html && !voids[string(name)] || space != html && !t.selfClosed
	id := s.elementRecord(raw, at, space, content)
	if content {
		return s.m.push(id)
	}
	return nil
}

// elementRecord makes the record of an element if it has handlers, and returns its id.
func (s *Stream) elementRecord(raw []byte, at int32, space namespace, content bool) int32 {
	count := 0
	for _, entry := range s.m.found {
		if s.m.entries[entry]&Elements != 0 {
			count++
		}
	}
	if count == 0 {
		return 0
	}
	if s.id++; s.id <= 0 {
		s.id = 1
	}
	t := &s.scan.tag
	flags := int32(space) * flagSpace
	if content {
		flags |= flagContent
	}
	if t.selfClosed && !content {
		flags |= flagSelfClosed
	}
	s.record(recordElement, at, len(raw)).add(flags, s.id)
	s.span(t.name, at)
	s.add(int32(count))
	for _, entry := range s.m.found {
		if s.m.entries[entry]&Elements != 0 {
			s.add(int32(entry))
		}
	}
	s.add(int32(len(t.attributes)))
	for _, a := range t.attributes {
		s.span(a.name, at)
		s.span(a.value, at)
		s.add(at + a.raw)
	}
	return s.id
}

func (s *Stream) end(raw []byte, at int32) {
	name := s.lowerName(raw)
	s.foreign.end(name)
	s.scan.cdata = s.foreign.current() != html
	if s.ids = s.m.end(name, s.ids[:0]); len(s.ids) == 0 {
		return
	}
	r := s.record(recordEnd, at, len(raw))
	r.span(s.scan.tag.name, at)
	r.add(int32(len(s.ids)))
	r.add(s.ids...)
}
