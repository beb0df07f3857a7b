package rewriter

import (
	"fmt"
	"slices"
)

// MaxStack bounds the stack of open elements, in bytes that it takes.
const MaxStack = 2 << 20

var errStack = fmt.Errorf("the open elements of the page take more than %d bytes: they are nested too deep", MaxStack)

// frameBytes is what an open element takes, without its sets and what it counts.
const frameBytes = 160

// openName is a name of open elements.
type openName struct {
	text string
	open int // elements
}

// frame is an open element.
type frame struct {
	name       *openName
	children   int
	kinds      map[string]int // children by name; nil if nobody asks
	inside     stateSet       // states that are open in the whole element
	inChildren stateSet       // states that are open for its children
	entries    []int          // that it matches
	id         int32          // of its record; 0 = none
	bytes      int
}

// matcher keeps the stack of open elements, and finds which entries an element matches.
type matcher struct {
	*program
	stack []frame // the first is the document
	names map[string]*openName
	bytes int
	tests int // states that were tested, since the caller has set it to 0
	el    element

	found  []int // entries that the element matches, in order
	opened frame // what the element opens
	fresh  bool  // opened.inside is not its parent's

	text, comments openEntries
}

// openEntries are the entries with an open element, for one kind of handler.
type openEntries struct {
	counts []int
	total  int
	listed []int // by list
	stale  bool  // listed is to be made anew
}

func (o *openEntries) add(entry, n int) {
	o.counts[entry] += n
	o.total += n
	o.stale = true
}

// list returns the entries in order.
func (o *openEntries) list() []int {
	if o.stale {
		o.stale, o.listed = false, o.listed[:0]
		for entry, n := range o.counts {
			if n > 0 {
				o.listed = append(o.listed, entry)
			}
		}
	}
	return o.listed
}

func newMatcher(p *program) *matcher {
	m := &matcher{program: p, stack: make([]frame, 1, 32), names: map[string]*openName{}}
	m.text.counts, m.comments.counts = make([]int, len(p.entries)), make([]int, len(p.entries))
	m.el.values, m.el.lows = make([]span, len(p.slots)), make([]span, len(p.slots))
	return m
}

// start finds what a start tag matches. name is in lower case.
func (m *matcher) start(name []byte, raw []byte, t *tag) error {
	parent := &m.stack[len(m.stack)-1]
	parent.children++
	e := &m.el
	e.name, e.raw, e.nth = name, raw, parent.children
	if m.ofType {
		if err := m.countKind(parent, name); err != nil {
			return err
		}
	}
	m.found = m.found[:0]
	m.opened = frame{inside: parent.inside}
	m.fresh = false
	m.readValues(t)
	for _, i := range m.byName[string(name)] {
		m.try(i)
	}
	for _, i := range m.anyName {
		m.try(i)
	}
	each(parent.inside, parent.inChildren, m.words, m.try)
	slices.Sort(m.found)
	m.found = slices.Compact(m.found)
	return e.stopped
}

func (m *matcher) countKind(parent *frame, name []byte) error {
	if parent.kinds == nil {
		parent.kinds = map[string]int{}
	}
	n, ok := parent.kinds[string(name)]
	if !ok {
		if err := m.take(parent, 64+len(name)); err != nil {
			return err
		}
	}
	m.el.of = n + 1
	parent.kinds[string(name)] = n + 1
	return nil
}

// take counts bytes of the stack that f has.
func (m *matcher) take(f *frame, n int) error {
	if m.bytes+n > MaxStack {
		return errStack
	}
	f.bytes += n
	m.bytes += n
	return nil
}

// readValues finds the attributes that tests look at. The first of a name counts.
func (m *matcher) readValues(t *tag) {
	if len(m.slots) == 0 {
		return
	}
	m.el.low = m.el.low[:0]
	for i := range m.el.values {
		m.el.values[i].from, m.el.lows[i].from = -1, -1
	}
	for _, a := range t.attributes {
		if slot, ok := m.slots[string(lower(a.name.of(m.el.raw)))]; ok && m.el.values[slot].from < 0 {
			m.el.values[slot] = a.value
		}
	}
}

// try tests the element in a state that is open.
func (m *matcher) try(i int) {
	m.tests++
	s := &m.states[i]
	if !s.matches(&m.el) {
		return
	}
	switch s.then {
	case final:
		m.found = append(m.found, s.entry)
	case descendant:
		shared := !m.fresh
		m.opened.inside = m.opened.inside.with(s.next, m.words, &shared)
		m.fresh = true
	case child:
		shared := false
		m.opened.inChildren = m.opened.inChildren.with(s.next, m.words, &shared)
	}
}

// push opens the element that start has looked at.
func (m *matcher) push(id int32) error {
	f := &m.opened
	n := frameBytes + len(m.el.name) + 8*len(m.found)
	if m.fresh {
		n += 8 * m.words
	}
	if f.inChildren != nil {
		n += 8 * m.words
	}
	if err := m.take(f, n); err != nil {
		return err
	}
	name := m.names[string(m.el.name)]
	if name == nil {
		name = &openName{text: string(m.el.name)}
		m.names[name.text] = name
	}
	name.open++
	f.name, f.id = name, id
	if len(m.found) > 0 {
		f.entries = slices.Clone(m.found)
		m.activate(f.entries, 1)
	}
	m.stack = append(m.stack, *f)
	return nil
}

func (m *matcher) activate(entries []int, n int) {
	for _, entry := range entries {
		if m.entries[entry]&Text != 0 {
			m.text.add(entry, n)
		}
		if m.entries[entry]&Comments != 0 {
			m.comments.add(entry, n)
		}
	}
}

// end closes the innermost element of that name and those inside it. It appends the ids of their records, the outermost
// first.
func (m *matcher) end(name []byte, ids []int32) []int32 {
	open := m.names[string(name)]
	if open == nil {
		return ids
	}
	at := len(m.stack) - 1
	for m.stack[at].name != open {
		at--
	}
	for i := at; i < len(m.stack); i++ {
		f := &m.stack[i]
		if f.id != 0 {
			ids = append(ids, f.id)
		}
		m.activate(f.entries, -1)
		m.bytes -= f.bytes
		if f.name.open--; f.name.open == 0 {
			delete(m.names, f.name.text)
		}
		*f = frame{}
	}
	m.stack = m.stack[:at]
	return ids
}
