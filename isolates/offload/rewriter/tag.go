package rewriter

import (
	"bytes"
	"fmt"
)

// MaxAttributes is the largest number of attributes of a tag.
const MaxAttributes = 4096

var errAttributes = fmt.Errorf("a tag of the page has more than %d attributes", MaxAttributes)

// attribute is an attribute of a start tag, as it is written. raw ends after the closing quote.
type attribute struct {
	name, value span
	raw         int32
}

// tag is a start tag or an end tag, as far as it has been read.
type tag struct {
	state      tagState
	quote      byte
	name       span
	attributes []attribute
	selfClosed bool
}

type tagState uint8

const (
	tagName tagState = iota
	beforeName
	inName
	afterName
	beforeValue
	inQuotes
	inValue
	afterSlash
)

// readTag reads a tag of which the first seen bytes have been read before.
func (s *scanner) readTag(b []byte, kind tokenKind) (tokenKind, int, error) {
	t := &s.tag
	at := s.seen
	if at == 0 {
		at = 1
		if kind == endToken {
			at = 2
		}
		*t = tag{state: tagName, name: span{int32(at), -1}, attributes: t.attributes[:0]}
	}
	for at < len(b) {
		c := b[at]
		switch t.state {
		case tagName:
			at = t.skipName(b, at)
			if at == len(b) {
				continue
			}
			t.name.to = int32(at)
			t.state = beforeName
			continue
		case inQuotes:
			i := bytes.IndexByte(b[at:], t.quote)
			if i < 0 {
				at = len(b)
				continue
			}
			at += i
			t.value(at, at+1)
			t.state = beforeName
		case inName:
			if !isSpace(c) && c != '/' && c != '>' && c != '=' {
				break
			}
			t.named(at)
			t.state = afterName
			continue
		default:
			if c == '>' {
				if t.state == inValue {
					t.value(at, at)
				}
				return kind, at + 1, nil
			}
			if !t.step(c, at) {
				return noToken, 0, errAttributes
			}
		}
		at++
	}
	s.seen = at
	return noToken, 0, nil
}

func (t *tag) skipName(b []byte, at int) int {
	for at < len(b) && !isSpace(b[at]) && b[at] != '/' && b[at] != '>' {
		at++
	}
	return at
}

// step reads a byte between attributes, or of an unquoted value. It returns false if there are too many attributes.
func (t *tag) step(c byte, at int) bool {
	switch t.state {
	case inValue:
		if isSpace(c) {
			t.value(at, at)
			t.state = beforeName
		}
		return true
	case beforeValue:
		switch {
		case isSpace(c):
			return true
		case c == '"' || c == '\'':
			t.quote, t.state = c, inQuotes
			t.last().value.from = int32(at + 1)
		default:
			t.state = inValue
			t.last().value.from = int32(at)
		}
		return true
	}
	switch {
	case isSpace(c):
		if t.state == afterSlash {
			t.state, t.selfClosed = beforeName, false
		}
	case c == '/':
		t.state, t.selfClosed = afterSlash, true
	case c == '=' && t.state == afterName:
		t.state = beforeValue
	default:
		if len(t.attributes) == MaxAttributes {
			return false
		}
		t.attributes = append(t.attributes, attribute{name: span{int32(at), -1}})
		t.state, t.selfClosed = inName, false
	}
	return true
}

func (t *tag) last() *attribute { return &t.attributes[len(t.attributes)-1] }

// named ends the name of the last attribute, which has no value so far.
func (t *tag) named(at int) {
	a := t.last()
	a.name.to, a.raw = int32(at), int32(at)
	a.value = span{int32(at), int32(at)}
}

// value ends the value of the last attribute. raw is where the attribute ends.
func (t *tag) value(at, raw int) {
	a := t.last()
	a.value.to, a.raw = int32(at), int32(raw)
}
