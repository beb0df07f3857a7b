package rewriter

import (
	"bytes"
	"fmt"
)

// MaxParts is the largest number of parts of all selectors of a rewriter: names, classes, attributes, and so on.
const MaxParts = 1024

// combinator is what stands between two compounds.
type combinator uint8

const (
	final      combinator = iota // nothing follows
	descendant                   // a space
	child                        // >
)

// compound is a part of a selector that one element matches.
type compound struct {
	name  string // lower case; "" = any
	tests []test
	then  combinator
}

// complexSelector is compounds with combinators between them.
type complexSelector []compound

// testKind is the kind of a test.
type testKind uint8

const (
	testID testKind = iota
	testClass
	testHas
	testEquals
	testWord
	testPrefix
	testSuffix
	testPart
	testDash
	testNth
	testNthOfType
	testNot
)

// test is one condition on an element.
type test struct {
	kind  testKind
	name  string // of an attribute, lower case
	slot  int    // of the name among the names that a Program looks at
	value []byte
	fold  bool // letters of both cases are the same
	a, b  int  // of nth: a·n + b
	not   []compound
}

// element is a start tag that tests look at.
type element struct {
	name     []byte // lower case
	values   []span // by slot; from is -1 where there is none
	raw      []byte
	low      []byte // values in lower case that tests have asked for
	lows     []span // by slot, in low; from is -1 where nobody has asked
	nth, of  int    // its place among the children of its parent, and among those with its name
	examined int    // bytes of values that tests have looked at
	goOn     func() error
	stopped  error // of goOn
}

func (c *compound) matches(e *element) bool {
	if c.name != "" && c.name != string(e.name) {
		return false
	}
	for i := range c.tests {
		if !c.tests[i].matches(e) {
			return false
		}
	}
	return true
}

func (t *test) matches(e *element) bool {
	switch t.kind {
	case testNth:
		return isNth(t.a, t.b, e.nth)
	case testNthOfType:
		return isNth(t.a, t.b, e.of)
	case testNot:
		for i := range t.not {
			if t.not[i].matches(e) {
				return false
			}
		}
		return true
	}
	at := e.values[t.slot]
	if at.from < 0 {
		return false
	}
	value := at.of(e.raw)
	if e.examined += len(value); e.examined > often && e.stopped == nil {
		e.examined, e.stopped = 0, e.goOn()
	}
	if e.stopped != nil {
		return false
	}
	if t.fold && t.kind != testHas {
		value = e.lower(t.slot)
	}
	return t.takes(value)
}

// lower returns a value in lower case. It is made once for all tests of the tag.
func (e *element) lower(slot int) []byte {
	if at := e.lows[slot]; at.from >= 0 {
		return at.of(e.low)
	}
	from := len(e.low)
	e.low = append(e.low, e.values[slot].of(e.raw)...)
	value := e.low[from:]
	for i, c := range value {
		if c >= 'A' && c <= 'Z' {
			value[i] = c + 'a' - 'A'
		}
	}
	e.lows[slot] = span{int32(from), int32(len(e.low))}
	return value
}

func (t *test) takes(value []byte) bool {
	switch t.kind {
	case testHas:
		return true
	case testID, testEquals:
		return bytes.Equal(value, t.value)
	case testClass, testWord:
		return hasWord(value, t.value)
	case testPrefix:
		return bytes.HasPrefix(value, t.value)
	case testSuffix:
		return bytes.HasSuffix(value, t.value)
	case testPart:
		return bytes.Contains(value, t.value)
	case testDash:
		rest, ok := bytes.CutPrefix(value, t.value)
		return ok && (len(rest) == 0 || rest[0] == '-')
	}
	return false
}

// isNth reports whether n is a·k + b for some k from 0 on.
func isNth(a, b, n int) bool {
	if a == 0 {
		return n == b
	}
	return (n-b)%a == 0 && (n-b)/a >= 0
}

func hasWord(value, word []byte) bool {
	if len(word) == 0 {
		return false
	}
	for len(value) > 0 {
		for len(value) > 0 && isSpace(value[0]) {
			value = value[1:]
		}
		n := 0
		for n < len(value) && !isSpace(value[n]) {
			n++
		}
		if bytes.Equal(value[:n], word) {
			return true
		}
		value = value[n:]
	}
	return false
}

// lower returns text with ASCII letters in lower case. It may be text itself.
func lower(text []byte) []byte {
	for i, c := range text {
		if c >= 'A' && c <= 'Z' {
			out := bytes.Clone(text)
			for j := i; j < len(out); j++ {
				if out[j] >= 'A' && out[j] <= 'Z' {
					out[j] += 'a' - 'A'
				}
			}
			return out
		}
	}
	return text
}

// Count checks a selector and returns how many parts it has.
func Count(selector string) (int, error) {
	list, err := parse(selector)
	if err != nil {
		return 0, err
	}
	parts := 0
	for _, one := range list {
		parts += countParts(one)
	}
	if parts > MaxParts {
		return 0, errParts
	}
	return parts, nil
}

var errParts = fmt.Errorf("the selectors of an HTMLRewriter have more than %d parts", MaxParts)

func countParts(compounds []compound) (n int) {
	for _, c := range compounds {
		n++
		for _, t := range c.tests {
			n += 1 + countParts(t.not)
		}
	}
	return n
}
