package wasmtest

// Bomb is a module that costs more than it looks.
type Bomb struct {
	Name   string
	Module func() []byte

	// Refused is a part of the reason why it does not pass the check of modules. Empty = it passes: V8's side has to
	// bound it when it runs, and its exported function f never ends, takes what it can get, or traps.
	Refused string
}

// Compiled are modules whose compilation is the cost, or whose instances are. All exceed a bound.
var Compiled = []Bomb{
	{"many variables and many blocks", func() []byte { return VariablesAndBlocks(40_000, 5_000) }, "values × branches"},
	{"many variables and many loops", func() []byte {
		return body(40_000, I32,
			Repeat(5_000, Loop, Void, LocalGet, 0, BrIf, 0, End))
	}, "values × branches"},
	{"a deep stack and many blocks", func() []byte {
		return body(0, I32, Join(Repeat(40_000, I32Const, 0),
			Repeat(5_000, Block, Void, End), Repeat(40_000, Drop)))
	}, "values × branches"},
	{"many variables and a long br_table", func() []byte {
		return body(5_000, I32, Join([]byte{Block, Void, LocalGet, 0,
			BrTable}, U32(50_000), Repeat(50_001, 0), []byte{End}))
	}, "values × branches"},
	{"many variables that live at the same time", func() []byte { return Live(20_000) }, "values × branches"},
	{"many references and many calls", func() []byte { return body(4_000, ExternRef, Repeat(4_000, Call, 0)) },
		"values × branches"},
	{"many references and many accesses to tables", func() []byte {
		return body(2_000, FuncRef, Repeat(8_000, I32Const, 0,
			0x25, 0, Drop))
	}, "values × branches"},
	{"many functions, each close to its bound", func() []byte { return ManyFunctions(400, 1_000, 400) },
		"of all functions"},
	{"more variables than V8 takes", func() []byte { return body(50_001, I32, nil) }, "variables of a function"},
	{"variables beyond 32 bits", func() []byte { return manyGroups() }, "variables of a function"},
	{"blocks within each other", func() []byte {
		return body(0, I32, Join(Repeat(30_000, Block, Void),
			Repeat(30_000, End)))
	}, "blocks within each other"},
	{"a long body", func() []byte { return body(0, I32, Repeat(1<<20, Nop)) }, "bytes of a function's body"},
	{"a long signature", func() []byte { return signature(51, 50) }, "parameters and results of a function"},
	{"many functions", func() []byte { return ManyFunctions(100_001, 0, 0) }, "functions"},
	{"many types", func() []byte { return manyTypes(10_001) }, "types: 10001"},
	{"a group of many types", func() []byte {
		return rawTypes(Join([]byte{0x4e}, U32(20_000),
			Repeat(20_000, 0x5f, 0)))
	},
		"types: 20000"},
	{"groups of no types", func() []byte { return groups(100_000) }, "types: 100000"},
	{"a structure of many fields", func() []byte {
		return rawTypes(Join([]byte{0x5f}, U32(2_001),
			Repeat(2_001, I32, 0)))
	}, "fields of a structure"},
	{"a large section of types", func() []byte { return largeTypes() }, "bytes of the type section"},
	{"many globals", func() []byte { return many(100_001, func(m *Module) { m.Global(I32, I32Const, 0) }) }, "globals"},
	{"many exports", func() []byte { return manyExports(100_001) }, "exports"},
	{"many imports", func() []byte { return many(10_001, func(m *Module) { m.ImportFunction("", "", 0) }) }, "imports"},
	{"many tags", func() []byte { return many(1_001, func(m *Module) { m.Tag(0) }) }, "tags"},
	{"many tables", func() []byte { return many(101, func(m *Module) { m.Table(0, 0) }) }, "tables"},
	{"a huge table", func() []byte { return Table(Limits(10_000_000, -1)) }, "entries of all tables at first"},
	{"tables that are huge together", func() []byte {
		return many(3, func(m *Module) {
			m.Table(Limits(400_000, -1)...)
		})
	},
		"entries of all tables at first: 1200000"},
	{"a table that may become huge", func() []byte { return Table(Limits(0, 10_000_000)) },
		"entries of all tables at most"},
	{"many data segments", func() []byte { return withMemory(100_001, "") }, "data segments"},
	{"many element segments", func() []byte { return many(10_001, func(m *Module) { m.RawElements(1, 0, 0) }) },
		"element segments"},
	{"many elements", func() []byte {
		return many(1, func(m *Module) {
			m.RawElements(Join([]byte{1, 0}, U32(1_000_001),
				Repeat(1_000_001, 0))...)
		})
	}, "entries of an element segment"},
	{"many custom sections", func() []byte { return many(1_001, func(m *Module) { m.Custom("", nil) }) },
		"custom sections"},
	{"a long name", func() []byte { return many(1, func(m *Module) { m.Export(string(make([]byte, 10_001)), 0) }) },
		"bytes of a name"},
	{"huge data", func() []byte { return withMemory(1, string(make([]byte, 16<<20))) },
		"bytes of the module"},
	{"a memory that is huge at first", func() []byte { return Memory(Limits(8_193, -1)) },
		"pages of a memory at first"},
	{"a second memory", func() []byte { return many(2, func(m *Module) { m.Memory(0, 1) }) }, "one is allowed"},
	{"a shared memory", func() []byte { return Memory([]byte{3, 1, 1}) }, "that threads share"},
	{"a 64-bit memory", func() []byte { return Memory([]byte{4, 1}) }, "64-bit"},
	{"a 64-bit table", func() []byte { return Table([]byte{4, 1}) }, "64-bit"},
	{"atomics", func() []byte { return body(0, I32, []byte{I32Const, 0, 0xfe, 0x10, 2, 0, Drop}) },
		"atomics (opcode 0xfe)"},
	{"a tail call", func() []byte { return body(0, I32, []byte{ReturnCall, 0}) }, "tail calls (opcode 0x12)"},
	{"an indirect tail call", func() []byte { return body(0, I32, []byte{I32Const, 0, 0x13, 0, 0}) },
		"tail calls (opcode 0x13)"},
	{"a tail call by reference", func() []byte { return body(0, I32, []byte{0xd2, 0, 0x15, 0}) },
		"tail calls (opcode 0x15)"},
}

// VariablesAndBlocks is a module of one function with so many variables and blocks.
func VariablesAndBlocks(variables, blocks int) []byte {
	return body(variables, I32, Repeat(blocks, Block, Void, LocalGet, 0, BrIf, 0, End))
}

// ManyFunctions is a module of so many functions, each of which has so many variables and blocks.
func ManyFunctions(functions, variables, blocks int) []byte {
	m := base()
	code := Repeat(blocks, Block, Void, End)
	for range functions {
		m.Function(0, variables, I32, code...)
	}
	return m.Bytes()
}

// Live is a module of one function, which reads so many numbers and then writes all of them.
func Live(n int) []byte {
	var read, write [][]byte
	for i := range n {
		read = append(read, []byte{I32Const, 0, I32Load, 0, 0, LocalSet}, U32(i))
		write = append(write, []byte{I32Const, 0, LocalGet}, U32(i), []byte{I32Store, 0, 0})
	}
	return body(n, I32, Join(Join(read...), Join(write...)))
}

// Table is a module with a table.
func Table(limits []byte) []byte {
	m := &Module{}
	m.Table(limits...)
	return m.Bytes()
}

// Memory is a module with a memory.
func Memory(limits []byte) []byte {
	m := &Module{}
	m.Memory(limits...)
	return m.Bytes()
}

// base is a module with a type of functions without values.
func base() *Module {
	m := &Module{}
	m.Type("", "")
	return m
}

// body is a module with a memory, a table, and a function that is exported as f.
func body(variables int, of byte, code []byte) []byte {
	m := base()
	m.Memory(Limits(1, -1)...)
	m.Table(Limits(1, -1)...)
	m.Export("f", m.Function(0, variables, of, code...))
	return m.Bytes()
}

// many is a module to which something was added n times.
func many(n int, add func(*Module)) []byte {
	m := base()
	m.Function(0, 0, I32)
	for range n {
		add(m)
	}
	return m.Bytes()
}

func withMemory(segments int, data string) []byte {
	m := base()
	m.Memory(Limits(512, -1)...)
	for range segments {
		m.Data(0, data)
	}
	return m.Bytes()
}

func manyExports(n int) []byte {
	m := base()
	m.Function(0, 0, I32)
	for i := range n {
		m.Export(string(U32(i&0x7f))+string(U32(i>>7&0x7f))+string(U32(i>>14)), 0)
	}
	return m.Bytes()
}

func manyGroups() []byte {
	m := base()
	m.RawFunction(0, Join(U32(2), U32(1<<32-1), []byte{I32}, U32(1<<32-1), []byte{I32, End}))
	return m.Bytes()
}

func signature(params, results int) []byte {
	m := &Module{}
	m.Type(string(Repeat(params, I32)), string(Repeat(results, I32)))
	return m.Bytes()
}

func manyTypes(n int) []byte {
	m := &Module{}
	for range n {
		m.Type("", "")
	}
	return m.Bytes()
}

func rawTypes(code []byte) []byte {
	m := &Module{}
	m.RawType(code...)
	return m.Bytes()
}

func groups(n int) []byte {
	m := &Module{}
	for range n {
		m.RawType(0x4e, 0)
	}
	return m.Bytes()
}

func largeTypes() []byte {
	m := &Module{}
	for range 200 {
		m.RawType(Join([]byte{0x5f}, U32(2_000), Repeat(2_000, I32, 0))...)
	}
	return m.Bytes()
}
