package rewriter

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxSelector is the largest selector, in bytes.
const MaxSelector = 16 << 10

// maxNots is how deep :not may be nested.
const maxNots = 8

// parser reads a selector.
type parser struct {
	text string
	at   int
	nots int
}

// parse reads a list of selectors.
func parse(text string) (list []complexSelector, err error) {
	if len(text) > MaxSelector {
		return nil, fmt.Errorf("the selector has more than %d bytes", MaxSelector)
	}
	p := &parser{text: text}
	for {
		one, err := p.complex()
		if err != nil {
			return nil, err
		}
		list = append(list, one)
		if p.end() {
			return list, nil
		}
		if !p.take(',') {
			return nil, p.unexpected()
		}
	}
}

func (p *parser) end() bool { return p.at >= len(p.text) }

func (p *parser) peek() byte {
	if p.end() {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) take(c byte) bool {
	if p.end() || p.text[p.at] != c {
		return false
	}
	p.at++
	return true
}

// unexpected is the error of what stands at at.
func (p *parser) unexpected() error {
	if p.end() {
		return fmt.Errorf("the selector %s ends too early", shown(p.text))
	}
	c, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Errorf("%q is not expected at position %d of the selector %s", c, p.at, shown(p.text))
}

func (p *parser) wrong(format string, args ...any) error {
	return fmt.Errorf("%s in the selector %s", fmt.Sprintf(format, args...), shown(p.text))
}

// shown is a selector in a message.
func shown(text string) string {
	const most = 100
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return strconv.Quote(text)
}

// skip skips white space and comments. It reports whether there was white space.
func (p *parser) skip() (space bool) {
	for !p.end() {
		switch {
		case isSpace(p.text[p.at]):
			space = true
			p.at++
		case strings.HasPrefix(p.text[p.at:], "/*"):
			i := strings.Index(p.text[p.at+2:], "*/")
			if i < 0 {
				p.at = len(p.text)
				return space
			}
			p.at += i + 4
		default:
			return space
		}
	}
	return space
}

func (p *parser) complex() (list complexSelector, err error) {
	p.skip()
	for {
		c, err := p.compound()
		if err != nil {
			return nil, err
		}
		space := p.skip()
		switch {
		case p.end() || p.peek() == ',':
			return append(list, c), nil
		case p.peek() == '>':
			p.at++
			c.then = child
			p.skip()
		case p.peek() == '+' || p.peek() == '~':
			return nil, p.wrong("the combinator %q is not supported: use a space or > ", p.peek())
		case space:
			c.then = descendant
		default:
			return nil, p.unexpected()
		}
		list = append(list, c)
	}
}

func (p *parser) compound() (c compound, err error) {
	begin := p.at
	if p.take('*') {
		if p.peek() == '|' {
			p.at++
			return p.typed(begin)
		}
	} else if p.startsName() {
		return p.typed(begin)
	}
	return p.tests(c, begin)
}

// typed reads a compound that begins with the name of an element.
func (p *parser) typed(begin int) (c compound, err error) {
	name, err := p.name()
	if err != nil {
		return c, err
	}
	c.name = string(lower([]byte(name)))
	return p.tests(c, begin)
}

func (p *parser) tests(c compound, begin int) (compound, error) {
	for {
		var t test
		var err error
		switch p.peek() {
		case '#':
			p.at++
			t, err = p.named(testID, "id")
		case '.':
			p.at++
			t, err = p.named(testClass, "class")
		case '[':
			p.at++
			t, err = p.attribute()
		case ':':
			p.at++
			t, err = p.pseudo()
		case '|':
			return c, p.wrong("a namespace is not supported")
		default:
			if p.at == begin {
				return c, p.unexpected()
			}
			return c, nil
		}
		if err != nil {
			return c, err
		}
		c.tests = append(c.tests, t)
	}
}

func (p *parser) named(kind testKind, attribute string) (test, error) {
	name, err := p.name()
	return test{kind: kind, name: attribute, value: []byte(name)}, err
}

// operators are those between the name and the value of an attribute.
var operators = []struct {
	text string
	kind testKind
}{
	{"=", testEquals},
	{"~=", testWord},
	{"^=", testPrefix},
	{"$=", testSuffix},
	{"*=", testPart},
	{"|=", testDash},
}

// folded are the attributes whose values have no case in HTML.
var folded = set(`accept accept-charset align alink axis bgcolor charset checked clear codetype color compact declare defer
	dir direction disabled enctype face frame hreflang http-equiv lang language link media method multiple nohref
	noresize noshade nowrap readonly rel rev rules scope scrolling selected shape target text type valign valuetype vlink`)

// attribute reads what follows [.
func (p *parser) attribute() (t test, err error) {
	p.skip()
	name, err := p.name()
	if err != nil {
		return t, err
	}
	t = test{kind: testHas, name: string(lower([]byte(name)))}
	p.skip()
	if p.end() || p.take(']') {
		return t, nil
	}
	for _, op := range operators {
		if strings.HasPrefix(p.text[p.at:], op.text) {
			t.kind = op.kind
			p.at += len(op.text)
			return t, p.attributeValue(&t)
		}
	}
	if p.peek() == '|' {
		return t, p.wrong("a namespace is not supported")
	}
	return t, p.unexpected()
}

func (p *parser) attributeValue(t *test) error {
	p.skip()
	value, err := p.value()
	if err != nil {
		return err
	}
	t.value, t.fold = []byte(value), folded[t.name]
	p.skip()
	if c := p.peek() | 0x20; c == 'i' || c == 's' {
		t.fold = c == 'i'
		p.at++
		p.skip()
	}
	if t.fold {
		t.value = lower(t.value)
	}
	if !p.end() && !p.take(']') {
		return p.unexpected()
	}
	return nil
}

// value reads a string or a name.
func (p *parser) value() (string, error) {
	quote := p.peek()
	if quote != '"' && quote != '\'' {
		return p.name()
	}
	p.at++
	var out strings.Builder
	for !p.end() {
		switch c := p.text[p.at]; c {
		case quote:
			p.at++
			return out.String(), nil
		case '\n', '\r', '\f':
			return "", p.wrong("a string has a line end")
		case '\\':
			p.escape(&out)
		default:
			out.WriteByte(c)
			p.at++
		}
	}
	return out.String(), nil
}

// pseudo reads what follows a colon.
func (p *parser) pseudo() (t test, err error) {
	if p.peek() == ':' {
		return t, p.wrong("a pseudo-element is not supported")
	}
	name, err := p.name()
	if err != nil {
		return t, err
	}
	switch name = strings.ToLower(name); name {
	case "first-child":
		return test{kind: testNth, b: 1}, nil
	case "first-of-type":
		return test{kind: testNthOfType, b: 1}, nil
	case "nth-child", "nth-of-type", "not":
	default:
		return t, p.wrong("%q is not supported", ":"+name)
	}
	if !p.take('(') {
		return t, p.wrong("%q needs an argument", ":"+name)
	}
	p.skip()
	switch name {
	case "not":
		t, err = p.not()
	case "nth-child":
		t, err = p.nth(testNth)
	default:
		t, err = p.nth(testNthOfType)
	}
	if err != nil {
		return t, err
	}
	p.skip()
	if !p.end() && !p.take(')') {
		return t, p.unexpected()
	}
	return t, nil
}

// not reads the argument of :not, a list of compounds.
func (p *parser) not() (t test, err error) {
	if p.nots++; p.nots > maxNots {
		return t, p.wrong(":not is nested more than %d times", maxNots)
	}
	defer func() { p.nots-- }()
	t.kind = testNot
	for {
		p.skip()
		c, err := p.compound()
		if err != nil {
			return t, err
		}
		t.not = append(t.not, c)
		if p.skip(); !p.take(',') {
			return t, nil
		}
	}
}
