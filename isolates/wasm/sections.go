package wasm

// readImports reads the import section.
func (m *module) readImports() {
	n := m.count("imports", MaxImports)
	m.info.Imports = n
	for ; n > 0 && m.err == nil; n-- {
		m.name()
		m.name()
		at := m.at
		switch kind := m.byte(); kind {
		case 0:
			m.addFunction()
			m.imported++
		case 1:
			m.refType()
			m.info.Tables++
			m.limits("entries of a table", 1<<32-1)
		case 2:
			m.readMemory(true)
		case 3:
			m.valueType()
			m.mutability()
			m.info.Globals++
		case 4:
			m.readTag()
		default:
			m.refuse(at, "import of kind %d is unknown", kind)
		}
	}
	m.atMost(m.at, "tables", int64(m.info.Tables), MaxTables)
}

func (m *module) mutability() { m.flag("whether a global changes", 1) }

func (m *module) readFunctions() {
	for n := m.count("functions", MaxFunctions); n > 0 && m.err == nil; n-- {
		m.addFunction()
	}
}

// addFunction reads the type of a function.
func (m *module) addFunction() {
	at := m.at
	n := m.u32()
	m.typeOf(at, n, function)
	if m.atMost(at, "functions", int64(len(m.functions)+1), MaxFunctions) {
		m.functions = append(m.functions, n)
	}
}

func (m *module) readTag() {
	at := m.at
	m.flag("attribute of a tag", 0)
	n := m.u32()
	m.typeOf(at, n, function)
	if m.atMost(at, "tags", int64(len(m.tags)+1), MaxTags) {
		m.tags = append(m.tags, n)
	}
}

// limits reads how many there are at first, and at most: -1 if nothing says it.
func (m *module) limits(what string, most int64) (initial, maximum int64) {
	at := m.at
	flags := m.byte()
	switch {
	case flags > 7:
		m.refuse(at, "flags 0x%02x of %s are unknown", flags, what)
	case flags&2 != 0:
		m.refuse(at, "%s that threads share (flags 0x%02x) are not supported", what, flags)
	case flags&4 != 0:
		m.refuse(at, "%s with 64-bit numbers (flags 0x%02x) are not supported", what, flags)
	}
	at = m.at
	initial, maximum = int64(m.u32()), -1
	m.atMost(at, what+" at first", initial, most)
	if flags&1 != 0 {
		at = m.at
		maximum = int64(m.u32())
		m.atMost(at, what+" at most", maximum, most)
		if maximum < initial {
			m.fail(at, "%s: %d at most, %d at first", what, maximum, initial)
		}
	}
	return initial, maximum
}

func (m *module) readTables() {
	at := m.at
	for n := m.count("tables", MaxTables); n > 0 && m.err == nil; n-- {
		filled := m.more() && m.b[m.at] == 0x40
		if filled {
			m.at++
			m.flag("second byte of a table with a first value", 0)
		}
		m.refType()
		initial, maximum := m.limits("entries of a table", 1<<32-1)
		m.info.TableEntries += initial
		m.info.TableMax += max(maximum, initial)
		m.info.Tables++
		if filled {
			m.constant()
		}
	}
	m.atMost(at, "tables", int64(m.info.Tables), MaxTables)
	m.atMost(at, "entries of all tables at first", m.info.TableEntries, MaxTable)
	m.atMost(at, "entries of all tables at most", m.info.TableMax, MaxTable)
}

func (m *module) readMemories() {
	for n := m.count("memories", MaxDataSegments); n > 0 && m.err == nil; n-- {
		m.readMemory(false)
	}
}

// mostPages is what 32 bits address.
const mostPages = 1 << 16

func (m *module) readMemory(imported bool) {
	at := m.at
	if m.info.Memory != nil {
		m.refuse(at, "a second memory: one is allowed")
		return
	}
	pages, most := m.limits("pages of a memory", mostPages)
	m.atMost(at, "pages of a memory at first", pages, MaxMemory)
	m.info.Memory = &Memory{Pages: pages, Max: most, Imported: imported}
}

func (m *module) readGlobals() {
	at := m.at
	for n := m.count("globals", MaxGlobals); n > 0 && m.err == nil; n-- {
		m.valueType()
		m.mutability()
		m.constant()
		m.info.Globals++
	}
	m.atMost(at, "globals", int64(m.info.Globals), MaxGlobals)
}

func (m *module) readExports() {
	m.info.Exports = m.count("exports", MaxExports)
	for n := m.info.Exports; n > 0 && m.err == nil; n-- {
		m.name()
		m.flag("kind of an export", 4)
		m.u32()
	}
}

// constant reads instructions that give one value.
func (m *module) constant() {
	b := body{module: m, constant: true}
	b.run(1)
}

// readElements reads the element segments. Three bits of a segment say what is there.
func (m *module) readElements() {
	const (
		passive  = 1 // or declared
		explicit = 2 // a table is named; not passive: declared
		inside   = 4 // entries are constants, not numbers of functions
	)
	for n := m.count("element segments", MaxElementSegments); n > 0 && m.err == nil; n-- {
		flags := m.number("flags of an element segment", 7)
		if flags&passive == 0 {
			if flags&explicit != 0 {
				m.u32()
			}
			m.constant()
		}
		if flags&(passive|explicit) != 0 {
			if flags&inside != 0 {
				m.refType()
			} else {
				m.flag("kind of elements", 0)
			}
		}
		at := m.at
		entries := m.count("entries of an element segment", MaxElements)
		m.info.Elements += entries
		m.atMost(at, "entries of all element segments", int64(m.info.Elements), MaxElements)
		for ; entries > 0 && m.err == nil; entries-- {
			if flags&inside != 0 {
				m.constant()
			} else {
				m.u32()
			}
		}
	}
}

// number reads a number of things that come later.
func (m *module) number(what string, most int64) int {
	at := m.at
	n := int64(m.u32())
	m.atMost(at, what, n, most)
	return int(n)
}

func (m *module) readData() {
	const passive, explicit = 1, 2
	m.found = m.count("data segments", MaxDataSegments)
	for n := m.found; n > 0 && m.err == nil; n-- {
		flags := m.number("flags of a data segment", 2)
		if flags == explicit {
			m.u32()
		}
		if flags != passive {
			m.constant()
		}
		size := m.count("bytes of a data segment", MaxModule)
		m.skip(size)
		m.info.Data += size
	}
}

// readCode reads the bodies of the functions.
func (m *module) readCode() {
	at := m.at
	m.bodies = m.count("bodies", MaxFunctions)
	if declared := len(m.functions) - m.imported; m.bodies != declared {
		m.fail(at, "%d functions are declared, %d have a body", declared, m.bodies)
	}
	section := m.end
	for i := 0; i < m.bodies && m.err == nil; i++ {
		at := m.at
		size := m.number("bytes of a function's body", MaxBody)
		if size > section-m.at {
			m.fail(at, "the body of a function has %d bytes, %d are left", size, section-m.at)
		}
		if m.err != nil {
			return
		}
		m.end = m.at + size
		m.readBody(at, m.imported+i)
		m.end = section
	}
	m.atMost(at, "values × branches of all functions", m.info.Work, MaxWorkModule)
}

// readBody reads the variables of a function and its instructions.
func (m *module) readBody(at, number int) {
	b := body{module: m}
	t := m.types[m.functions[number]]
	locals, refs := int64(t.params), int64(t.refs)
	for n := m.count("groups of variables", MaxBody); n > 0 && m.err == nil; n-- {
		at := m.at
		same := int64(m.u32())
		locals += same
		if !m.atMost(at, "variables of a function", locals, MaxLocals) {
			return
		}
		if m.valueType() {
			refs += same
		}
	}
	b.locals, b.refs = int(locals), int(refs)
	b.run(int(t.results))
	if m.err == nil && m.more() {
		m.fail(m.at, "%d bytes follow the end of function %d", m.end-m.at, number)
	}
	work := b.total()
	if m.err == nil && work > MaxWorkFunction {
		m.refuse(at, "values × branches of function %d: %d, at most %d allowed", number, work, int64(MaxWorkFunction))
	}
	m.info.Work += work
	m.info.Compiled += b.compiled()
	m.info.WorkFunction = max(m.info.WorkFunction, work)
}
