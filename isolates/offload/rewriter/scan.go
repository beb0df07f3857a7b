package rewriter

import (
	"bytes"
	"errors"
	"fmt"
)

// MaxToken is the largest tag, comment or doctype, in bytes.
const MaxToken = 1 << 20

var errToken = fmt.Errorf("a tag, a comment or a doctype of the page has more than %d bytes", MaxToken)

// tokenKind is what next has found.
type tokenKind uint8

const (
	noToken   tokenKind = iota // the rest of the input is incomplete
	textToken                  // bytes that are text, perhaps not the whole text node
	startToken
	endToken
	commentToken
	doctypeToken
	markupToken // bytes that are neither text nor a token, such as </> and <![CDATA[
)

// textMode is how text is read. It depends on the start tag before it.
type textMode uint8

const (
	dataText   textMode = iota
	rawText             // ends with the end tag of rawName
	scriptText          // the same, but for comments in it
	plainText           // never ends
	cdataText
)

// scanner splits a page into tokens. Positions are relative to the start of the token.
type scanner struct {
	mode    textMode
	rawName string // lower case
	script  scriptState
	cdata   bool // <![CDATA[ begins text here

	seen int // bytes of an incomplete token that need not be read again
	tag  tag
	body span // of a comment: its text
}

// span is a part of a token. from is -1 if there is no such part.
type span struct{ from, to int32 }

var errMode = errors.New("unknown mode of text")

// next reads the token at the start of b. size is its length. last says that nothing follows b.
func (s *scanner) next(b []byte, last bool) (kind tokenKind, size int, err error) {
	if len(b) == 0 {
		return noToken, 0, nil
	}
	if kind, size, err = s.read(b, last); kind == noToken && err == nil {
		if len(b) > MaxToken {
			return noToken, 0, errToken
		}
		if last { // an incomplete tag at the end of the page is no tag
			return markupToken, len(b), nil
		}
		return noToken, 0, nil
	}
	s.seen = 0
	if kind != textToken && size > MaxToken {
		return noToken, 0, errToken
	}
	return kind, size, err
}

func (s *scanner) read(b []byte, last bool) (tokenKind, int, error) {
	switch s.mode {
	case dataText:
		if b[0] == '<' {
			return s.markup(b, last)
		}
		if i := bytes.IndexByte(b, '<'); i >= 0 {
			return textToken, i, nil
		}
		return textToken, len(b), nil
	case rawText:
		return s.raw(b, last)
	case scriptText:
		return s.scriptData(b, last)
	case plainText:
		return textToken, len(b), nil
	case cdataText:
		return s.cdataSection(b, last)
	}
	return noToken, 0, errMode
}

// markup reads what begins with <.
func (s *scanner) markup(b []byte, last bool) (tokenKind, int, error) {
	if len(b) < 2 {
		return orText(last, 1)
	}
	switch c := b[1]; {
	case isLetter(c):
		return s.readTag(b, startToken)
	case c == '/':
		return s.endOf(b, last)
	case c == '!':
		return s.declaration(b, last)
	case c == '?':
		return s.bogus(b, 1, last)
	}
	return textToken, 1, nil
}

// orText returns n bytes of text if nothing follows that could make them something else.
func orText(last bool, n int) (tokenKind, int, error) {
	if last {
		return textToken, n, nil
	}
	return noToken, 0, nil
}

// endOf reads what begins with </.
func (s *scanner) endOf(b []byte, last bool) (tokenKind, int, error) {
	switch {
	case len(b) < 3:
		return orText(last, 2)
	case isLetter(b[2]):
		return s.readTag(b, endToken)
	case b[2] == '>':
		return markupToken, 3, nil
	}
	return s.bogus(b, 2, last)
}

// declaration reads what begins with <!.
func (s *scanner) declaration(b []byte, last bool) (tokenKind, int, error) {
	rest := b[2:]
	switch {
	case bytes.HasPrefix(rest, []byte("--")):
		return s.comment(b, last)
	case len(rest) >= 7 && bytes.EqualFold(rest[:7], []byte("doctype")):
		return s.untilGreater(b, doctypeToken, last)
	case s.cdata && bytes.HasPrefix(rest, []byte("[CDATA[")):
		s.mode = cdataText
		return markupToken, 9, nil
	case !last && (len(rest) < 2 && bytes.HasPrefix([]byte("--"), rest) || len(rest) < 7 && mayBecome(rest)):
		return noToken, 0, nil
	}
	return s.bogus(b, 2, last)
}

// mayBecome reports whether what follows <! may be the beginning of a doctype or of CDATA.
func mayBecome(rest []byte) bool {
	return bytes.EqualFold(rest, []byte("doctype")[:len(rest)]) || bytes.HasPrefix([]byte("[CDATA["), rest)
}

// bogus reads a comment that ends with the first >. Its text begins at from.
func (s *scanner) bogus(b []byte, from int, last bool) (tokenKind, int, error) {
	s.body.from = int32(from)
	return s.untilGreater(b, commentToken, last)
}

func (s *scanner) untilGreater(b []byte, kind tokenKind, last bool) (tokenKind, int, error) {
	i := bytes.IndexByte(b[s.seen:], '>')
	switch {
	case i >= 0:
		s.body.to = int32(s.seen + i)
		return kind, s.seen + i + 1, nil
	case last:
		s.body.to = int32(len(b))
		return kind, len(b), nil
	}
	s.seen = len(b)
	return noToken, 0, nil
}

// comment reads what begins with <!--.
func (s *scanner) comment(b []byte, last bool) (tokenKind, int, error) {
	const open = 4
	for _, short := range []string{">", "->"} {
		if bytes.HasPrefix(b[open:], []byte(short)) {
			s.body = span{open, open}
			return commentToken, open + len(short), nil
		}
	}
	for at := max(s.seen, open); ; {
		i := bytes.Index(b[at:], []byte("--"))
		if i < 0 {
			s.seen = max(open, len(b)-1)
			break
		}
		end := at + i
		after := b[end+2:]
		switch {
		case bytes.HasPrefix(after, []byte(">")):
			s.body = span{open, int32(end)}
			return commentToken, end + 3, nil
		case bytes.HasPrefix(after, []byte("!>")):
			s.body = span{open, int32(end)}
			return commentToken, end + 4, nil
		case len(after) == 0 || string(after) == "!":
			s.seen = end
			if last {
				s.body = span{open, int32(end)}
				return commentToken, len(b), nil
			}
			return noToken, 0, nil
		}
		at = end + 1
	}
	if last {
		s.body = span{open, int32(max(open, len(bytes.TrimSuffix(b, []byte("-")))))}
		return commentToken, len(b), nil
	}
	return noToken, 0, nil
}

func (s *scanner) cdataSection(b []byte, last bool) (tokenKind, int, error) {
	i := bytes.IndexByte(b, ']')
	switch {
	case i < 0:
		return textToken, len(b), nil
	case i > 0:
		return textToken, i, nil
	case bytes.HasPrefix(b, []byte("]]>")):
		s.mode = dataText
		return markupToken, 3, nil
	case !last && len(b) < 3 && bytes.HasPrefix([]byte("]]>"), b):
		return noToken, 0, nil
	}
	return textToken, 1, nil
}

// raw reads the text of an element such as style, or its end tag.
func (s *scanner) raw(b []byte, last bool) (tokenKind, int, error) {
	if i := bytes.IndexByte(b, '<'); i != 0 {
		if i < 0 {
			i = len(b)
		}
		return textToken, i, nil
	}
	return s.rawEnd(b, last)
}

// rawEnd reads what begins with < in such text: the end tag of the element, or a byte of text.
func (s *scanner) rawEnd(b []byte, last bool) (tokenKind, int, error) {
	switch isEnd, whole := endsRaw(b, s.rawName); {
	case isEnd && whole:
		kind, size, err := s.readTag(b, endToken)
		if kind == endToken {
			s.mode, s.rawName = dataText, ""
		}
		return kind, size, err
	case isEnd:
		return orText(last, 1)
	}
	return textToken, 1, nil
}

// endsRaw reports whether b begins with </name and a byte that ends the name, or may do so when more comes.
func endsRaw(b []byte, name string) (is, whole bool) {
	head := "</"
	n := min(len(b), len(head))
	if string(b[:n]) != head[:n] {
		return false, false
	}
	b = b[n:]
	n = min(len(b), len(name))
	if !bytes.EqualFold(b[:n], []byte(name[:n])) {
		return false, false
	}
	if len(b) <= len(name) {
		return true, false
	}
	c := b[len(name)]
	return isSpace(c) || c == '/' || c == '>', true
}

func isLetter(c byte) bool { c |= 0x20; return c >= 'a' && c <= 'z' }

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f' }
