package wasm

import "bytes"

// header is the magic number and the version of a module.
var header = []byte("\x00asm\x01\x00\x00\x00")

// Check walks a module once and returns what it needs and what it costs, or an *Error which says what is wrong, at
// which byte, and what is allowed. It does not keep the module. Any goroutine may call it.
func Check(code []byte) (Info, error) {
	m := module{reader: reader{b: code, end: len(code)}, segments: -1}
	if !m.atMost(0, "bytes of the module", int64(len(code)), MaxModule) {
		return Info{}, m.err
	}
	if !bytes.HasPrefix(code, header) {
		return Info{}, &Error{Reason: "not a WebAssembly module of version 1, which begins with 00 61 73 6d 01 00 00 00"}
	}
	m.at = len(header)
	for last := 0; m.more() && m.err == nil; {
		last = m.section(last)
	}
	m.whole()
	if m.err != nil {
		return Info{}, m.err
	}
	return m.info, nil
}

// module is a walk through a module, and what later sections need of earlier ones.
type module struct {
	reader
	info      Info
	types     []typ
	functions []uint32 // their types, imported ones first
	tags      []uint32 // their types
	imported  int      // functions
	bodies    int
	segments  int // of data, as the module says before its code; -1 = it does not
	found     int // segments of data
	custom    int // sections
	frames    []frame
}

// Numbers of sections.
const (
	customSection, typeSection, importSection, functionSection, tableSection, memorySection, globalSection,
	exportSection, startSection, elementSection, codeSection, dataSection, countSection, tagSection = 0, 1, 2, 3,
		4, 5, 6, 7, 8, 9, 10, 11, 12, 13
)

// places says in which order the sections come, by their numbers.
var places = [...]int{typeSection: 1, importSection: 2, functionSection: 3, tableSection: 4, memorySection: 5,
	tagSection: 6, globalSection: 7, exportSection: 8, startSection: 9, elementSection: 10, countSection: 11,
	codeSection: 12, dataSection: 13}

// section reads one section, which comes after the one at place last, and returns its own place.
func (m *module) section(last int) int {
	r := &m.reader
	at := r.at
	id := r.byte()
	size := r.u32()
	if r.err != nil {
		return last
	}
	if int64(size) > int64(r.end-r.at) {
		r.fail(at, "section %d has %d bytes, %d are left", id, size, r.end-r.at)
		return last
	}
	if int(id) >= len(places) {
		r.refuse(at, "section %d is unknown", id)
		return last
	}
	place := places[id]
	if id == customSection {
		place = last
	} else if place <= last {
		r.fail(at, "section %d comes twice, or too late", id)
		return last
	}
	all := r.end
	r.end = r.at + int(size)
	if id == codeSection {
		m.info.Code = r.end - at
	}
	m.contents(id)
	if r.err == nil && r.more() {
		r.fail(r.at, "%d bytes are left at the end of section %d", r.end-r.at, id)
	}
	r.end = all
	return place
}

// TypeSection returns the contents of the section with the types of a module that Check has accepted; nil = there is
// none.
func TypeSection(code []byte) []byte {
	r := reader{b: code, at: len(header), end: len(code)}
	for r.more() {
		id, size := r.byte(), int(r.u32())
		if r.err != nil || size > r.end-r.at {
			return nil
		}
		if id == typeSection {
			return code[r.at : r.at+size]
		}
		r.at += size
	}
	return nil
}

func (m *module) contents(id byte) {
	switch id {
	case customSection:
		m.custom++
		m.atMost(m.at, "custom sections", int64(m.custom), MaxCustomSections)
		m.name()
		m.at = m.end
	case typeSection:
		m.readTypes()
	case importSection:
		m.readImports()
	case functionSection:
		m.readFunctions()
	case tableSection:
		m.readTables()
	case memorySection:
		m.readMemories()
	case globalSection:
		m.readGlobals()
	case exportSection:
		m.readExports()
	case startSection:
		m.info.Start = true
		m.u32()
	case elementSection:
		m.readElements()
	case codeSection:
		m.readCode()
	case dataSection:
		m.readData()
	case countSection:
		m.segments = m.number("data segments", MaxDataSegments)
	case tagSection:
		for n := m.count("tags", MaxTags); n > 0 && m.err == nil; n-- {
			m.readTag()
		}
	}
}

// whole checks what only the end of the module shows.
func (m *module) whole() {
	if declared := len(m.functions) - m.imported; m.bodies != declared {
		m.fail(m.at, "%d functions are declared, %d have a body", declared, m.bodies)
	}
	if m.segments >= 0 && m.segments != m.found {
		m.fail(m.at, "%d data segments are announced, %d are there", m.segments, m.found)
	}
	m.info.Functions = len(m.functions)
	m.info.Tags = len(m.tags)
}
