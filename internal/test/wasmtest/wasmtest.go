// Package wasmtest writes WebAssembly modules for tests: small ones that do what a test says, and bombs, which cost
// more than they look.
package wasmtest

// Types of values.
const (
	I32, I64, F32, F64, V128   byte = 0x7f, 0x7e, 0x7d, 0x7c, 0x7b
	FuncRef, ExternRef, AnyRef byte = 0x70, 0x6f, 0x6e
	Void                       byte = 0x40 // of a block
)

// Codes of instructions.
const (
	Unreachable, Nop, Block, Loop, If, Else, End  byte = 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x0b
	Br, BrIf, BrTable, Return, Call, CallIndirect byte = 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11
	ReturnCall                                    byte = 0x12
	Drop, Select                                  byte = 0x1a, 0x1b
	LocalGet, LocalSet, LocalTee, GlobalGet       byte = 0x20, 0x21, 0x22, 0x23
	I32Load, I32Store, MemorySize, MemoryGrow     byte = 0x28, 0x36, 0x3f, 0x40
	I32Const, I64Const, I32Eqz, I32Add, I32Sub    byte = 0x41, 0x42, 0x45, 0x6a, 0x6b
	RefNull                                       byte = 0xd0
)

// Instructions of bulk memory and tables. Each takes its operands from the stack.
var (
	MemoryCopy = []byte{0xfc, 0x0a, 0, 0}
	MemoryFill = []byte{0xfc, 0x0b, 0}
	TableGrow  = []byte{0xfc, 0x0f, 0}
	TableFill  = []byte{0xfc, 0x11, 0}
	TableCopy  = []byte{0xfc, 0x0e, 0, 0}
)

// Module is a module that is being written. Each of its lists becomes a section, in the order that the format wants.
type Module struct {
	types, imports, functions, tables, memories, tags, globals, exports, elements, codes, data list
	start                                                                                      []byte
	customs                                                                                    []byte
	count                                                                                      []byte
}

// list is the contents of a section: so many things, one after the other.
type list struct {
	n    int
	code []byte
}

func (l *list) add(parts ...[]byte) int {
	l.code = append(l.code, Join(parts...)...)
	l.n++
	return l.n - 1
}

// Type adds the type of a function and returns its number.
func (m *Module) Type(params, results string) int {
	return m.types.add([]byte{0x60}, vector(params), vector(results))
}

// RawType adds a type as it is written in a module.
func (m *Module) RawType(code ...byte) int { return m.types.add(code) }

// ImportFunction imports a function. Imports come before other functions, whose numbers follow.
func (m *Module) ImportFunction(from, name string, typ int) int {
	m.imports.add(vector(from), vector(name), []byte{0}, U32(typ))
	return m.imports.n - 1
}

// ImportMemory imports a memory with limits as they are written in a module.
func (m *Module) ImportMemory(from, name string, limits ...byte) {
	m.imports.add(vector(from), vector(name), []byte{2}, limits)
}

// Function adds a function with so many variables of a type, and returns its number if no function is imported. Its
// code has no end: that is added.
func (m *Module) Function(typ, locals int, of byte, code ...byte) int {
	groups := U32(0)
	if locals > 0 {
		groups = Join(U32(1), U32(locals), []byte{of})
	}
	return m.RawFunction(typ, Join(groups, code, []byte{End}))
}

// RawFunction adds a function with a body as it is written in a module, its size aside.
func (m *Module) RawFunction(typ int, body []byte) int {
	m.functions.add(U32(typ))
	return m.codes.add(U32(len(body)), body)
}

// Table adds a table of functions with limits as they are written in a module.
func (m *Module) Table(limits ...byte) { m.tables.add([]byte{FuncRef}, limits) }

// Memory adds a memory with limits as they are written in a module.
func (m *Module) Memory(limits ...byte) { m.memories.add(limits) }

// Limits are how many there are at first, and at most unless that is negative.
func Limits(initial, most int) []byte {
	if most < 0 {
		return Join([]byte{0}, U32(initial))
	}
	return Join([]byte{1}, U32(initial), U32(most))
}

// Tag adds a tag, whose exceptions have the parameters of a type.
func (m *Module) Tag(typ int) int { return m.tags.add([]byte{0}, U32(typ)) }

// Global adds a global that changes, with the constant that it has at first.
func (m *Module) Global(of byte, constant ...byte) int {
	return m.globals.add([]byte{of, 1}, constant, []byte{End})
}

// Export exports a function.
func (m *Module) Export(name string, function int) { m.ExportKind(name, 0, function) }

// ExportKind exports a function (0), a table (1), a memory (2), a global (3) or a tag (4).
func (m *Module) ExportKind(name string, kind byte, number int) {
	m.exports.add(vector(name), []byte{kind}, U32(number))
}

// Start has a function run when an instance is created.
func (m *Module) Start(function int) { m.start = U32(function) }

// Elements adds a segment that puts functions at the beginning of the table.
func (m *Module) Elements(functions ...int) {
	code := []byte{0, I32Const, 0, End}
	code = append(code, U32(len(functions))...)
	for _, f := range functions {
		code = append(code, U32(f)...)
	}
	m.elements.add(code)
}

// RawElements adds an element segment as it is written in a module.
func (m *Module) RawElements(code ...byte) { m.elements.add(code) }

// Data adds a segment that is copied to a place in memory.
func (m *Module) Data(at int, data string) {
	m.data.add([]byte{0, I32Const}, S32(at), []byte{End}, vector(data))
}

// Count announces how many data segments there are.
func (m *Module) Count(n int) { m.count = Section(12, U32(n)) }

// Custom adds a custom section, after all others.
func (m *Module) Custom(name string, contents []byte) {
	m.customs = append(m.customs, Section(0, Join(vector(name), contents))...)
}

// Bytes returns the module.
func (m *Module) Bytes() []byte {
	out := []byte("\x00asm\x01\x00\x00\x00")
	for _, s := range []struct {
		id byte
		list
	}{{1, m.types}, {2, m.imports}, {3, m.functions}, {4, m.tables}, {5, m.memories}, {13, m.tags}, {6, m.globals},
		{7, m.exports}} {
		out = append(out, s.section(s.id)...)
	}
	if m.start != nil {
		out = append(out, Section(8, m.start)...)
	}
	return Join(out, m.elements.section(9), m.count, m.codes.section(10), m.data.section(11), m.customs)
}

func (l list) section(id byte) []byte {
	if l.n == 0 {
		return nil
	}
	return Section(id, Join(U32(l.n), l.code))
}

// Section writes a section.
func Section(id byte, contents []byte) []byte { return Join([]byte{id}, U32(len(contents)), contents) }

// Join returns the parts, one after the other.
func Join(parts ...[]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// Repeat returns code n times.
func Repeat(n int, code ...byte) []byte {
	out := make([]byte, 0, n*len(code))
	for range n {
		out = append(out, code...)
	}
	return out
}

// U32 writes an unsigned number.
func U32(n int) []byte {
	var out []byte
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

// S32 writes a signed number.
func S32(n int) []byte {
	var out []byte
	for ; n < -0x40 || n >= 0x40; n >>= 7 {
		out = append(out, byte(n&0x7f)|0x80)
	}
	return append(out, byte(n&0x7f))
}

func vector(s string) []byte { return append(U32(len(s)), s...) }
