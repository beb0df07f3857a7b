package rewriter

import (
	"fmt"
	"math/bits"
)

// Handlers says what the handlers of a rewriter ask for.
type Handlers uint8

// The kinds of handlers.
const (
	Elements Handlers = 1 << iota
	Comments
	Text
	Doctypes
)

// MaxEntries is the largest number of selectors with handlers.
const MaxEntries = 1024

const (
	// MaxSelectors is the largest sum of the bytes of all selectors.
	MaxSelectors = 64 << 10

	// selectorMemory is what a program takes at most: the texts and their copies, the parts, and what is kept by entry.
	selectorMemory = 4*MaxSelectors + 512*MaxParts + 64*MaxEntries
)

var errSelectors = fmt.Errorf("the selectors of an HTMLRewriter have more than %d bytes", MaxSelectors)

// program has the compounds of all selectors as the states of a machine. A state that is open in an element tests each
// element inside it. A match of the last compound of a selector is a match of the selector's entry. Any other opens the
// next state. So an element costs as much as there are open states, however deep it is.
type program struct {
	states   []state
	byName   map[string][]int // states that are open everywhere, by the name of the element
	anyName  []int            // those for each name
	entries  []Handlers       // by index
	slots    map[string]int   // names of attributes that tests look at
	ofType   bool             // places among elements of one name are asked for
	document Handlers         // of the document
	words    int              // of a set of states
	parts    int              // of the selectors
}

type state struct {
	compound
	next  int // the state that a match opens
	entry int // the entry that matches, if the compound is the last
}

// compile makes the program of selectors. handlers has what is asked for with each of them, and the document's last.
func compile(selectors []string, handlers []Handlers) (*program, error) {
	if len(selectors) > MaxEntries || len(handlers) != len(selectors)+1 {
		return nil, fmt.Errorf("an HTMLRewriter has at most %d selectors", MaxEntries)
	}
	p := &program{byName: map[string][]int{}, slots: map[string]int{}}
	p.entries, p.document = handlers[:len(selectors)], handlers[len(selectors)]
	size := 0
	for entry, text := range selectors {
		if size += len(text); size > MaxSelectors {
			return nil, errSelectors
		}
		list, err := parse(text)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			if p.parts += countParts(one); p.parts > MaxParts {
				return nil, errParts
			}
			p.add(one, entry)
		}
	}
	p.words = (len(p.states) + 63) / 64
	return p, nil
}

func (p *program) add(selector complexSelector, entry int) {
	first := len(p.states)
	if name := selector[0].name; name == "" {
		p.anyName = append(p.anyName, first)
	} else {
		p.byName[name] = append(p.byName[name], first)
	}
	for i, c := range selector {
		p.prepare(c.tests)
		p.states = append(p.states, state{compound: c, next: first + i + 1, entry: entry})
	}
}

// prepare gives the tests the slots of their attributes.
func (p *program) prepare(tests []test) {
	for i := range tests {
		t := &tests[i]
		switch t.kind {
		case testNth:
		case testNthOfType:
			p.ofType = true
		case testNot:
			for j := range t.not {
				p.prepare(t.not[j].tests)
			}
		default:
			slot, ok := p.slots[t.name]
			if !ok {
				slot = len(p.slots)
				p.slots[t.name] = slot
			}
			t.slot = slot
		}
	}
}

// stateSet is a set of states. nil is empty. A set that an element shares with its parent is not changed.
type stateSet []uint64

func (s stateSet) with(i, words int, shared *bool) stateSet {
	if *shared || s == nil {
		next := make(stateSet, words)
		copy(next, s)
		s, *shared = next, false
	}
	s[i/64] |= 1 << (i % 64)
	return s
}

func (s stateSet) word(i int) uint64 {
	if s == nil {
		return 0
	}
	return s[i]
}

// each calls f for the states that are in a or in b.
func each(a, b stateSet, words int, f func(int)) {
	if a == nil && b == nil {
		return
	}
	for i := range words {
		for w := a.word(i) | b.word(i); w != 0; w &= w - 1 {
			f(i*64 + bits.TrailingZeros64(w))
		}
	}
}
