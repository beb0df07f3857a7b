package wasmtest

// Running are modules that pass the check of modules. What they do when they run, V8's side has to end, bound or
// charge: each exports f, which never returns, or takes memory until it cannot. The ones that begin with "start"
// never end while their instance is created.
var Running = []Bomb{
	{Name: "an endless loop", Module: func() []byte { return endless() }},
	{Name: "loops within each other", Module: func() []byte {
		return body(0, I32, Join(Repeat(100, Loop, Void), []byte{Br}, U32(99), Repeat(100, End)))
	}},
	{Name: "a loop of calls", Module: func() []byte { return called(Call, 1) }},
	{Name: "a loop of indirect calls", Module: func() []byte { return called(I32Const, 0, CallIndirect, 0, 0) }},
	{Name: "recursion", Module: func() []byte { return body(0, I32, []byte{Call, 0}) }},
	{Name: "recursion with many variables", Module: func() []byte { return body(4_000, I32, []byte{Call, 0}) }},
	{Name: "memory.fill", Module: func() []byte {
		return pages(endless(I32Const, 0, I32Const, 1, I32Const, 0x80, 0x80, 0xc0, 0x02, 0xfc, 0x0b, 0))
	}},
	{Name: "memory.copy", Module: func() []byte {
		return pages(endless(I32Const, 0, I32Const, 1, I32Const, 0x80, 0x80, 0xc0, 0x02, 0xfc, 0x0a, 0, 0))
	}},
	{Name: "memory.grow", Module: func() []byte { return endless(I32Const, 1, MemoryGrow, 0, Drop) }},
	{Name: "memory.grow and a write to each page", Module: func() []byte {
		return endless(I32Const, 1, MemoryGrow, 0, Drop, MemorySize, 0, I32Const, 1, I32Sub, I32Const, 16, 0x74,
			I32Const, 1, I32Store, 0, 0)
	}},
	{Name: "table.grow", Module: func() []byte {
		return endless(RefNull, FuncRef, I32Const, 0xe4, 0, 0xfc, 0x0f, 0, Drop)
	}},
	{Name: "table.fill", Module: func() []byte {
		return entries(endless(I32Const, 0, RefNull, FuncRef, I32Const, 0xc0, 0x84, 0x3d, 0xfc, 0x11, 0))
	}},
	{Name: "table.copy", Module: func() []byte {
		return entries(endless(I32Const, 0, I32Const, 1, I32Const, 0xbf, 0x84, 0x3d, 0xfc, 0x0e, 0, 0))
	}},
	{Name: "structures that are kept", Module: func() []byte { return chain() }},
	{Name: "large arrays", Module: func() []byte { return arrays() }},
	{Name: "array.fill", Module: func() []byte { return arrayFill() }},
	{Name: "a loop that catches what it throws", Module: func() []byte { return throwing() }},
	{Name: "vectors", Module: func() []byte {
		return endless(Join([]byte{0xfd, 0x0c}, make([]byte, 16), []byte{0xfd, 0x4d, Drop})...)
	}},
	{Name: "start: an endless loop", Module: func() []byte { return starting(Loop, Void, Br, 0, End) }},
	{Name: "start: memory.grow", Module: func() []byte {
		return starting(Loop, Void, I32Const, 1, MemoryGrow, 0, Drop, Br, 0, End)
	}},
	{Name: "start: a trap", Module: func() []byte { return starting(Unreachable) }},
}

// endless is a module whose function does something again and again.
func endless(code ...byte) []byte {
	return body(0, I32, Join([]byte{Loop, Void}, code, []byte{Br, 0, End}))
}

// pages gives the memory of a module made by body 160 pages: 10 MiB.
func pages(module []byte) []byte { return replace(module, 5, Join(U32(1), Limits(160, -1))) }

// entries gives the table of a module made by body 1,000,000 entries.
func entries(module []byte) []byte {
	return replace(module, 4, Join(U32(1), []byte{FuncRef}, Limits(1_000_000, -1)))
}

// replace replaces a section.
func replace(module []byte, id byte, contents []byte) []byte {
	out := append([]byte{}, module[:8]...)
	for rest := module[8:]; len(rest) > 0; {
		size, n := readU32(rest[1:])
		end := 1 + n + size
		if rest[0] == id {
			out = append(out, Section(id, contents)...)
		} else {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out
}

// readU32 reads an unsigned number that U32 wrote, and returns its length too.
func readU32(b []byte) (n, length int) {
	for shift := 0; ; shift += 7 {
		c := b[length]
		length++
		n |= int(c&0x7f) << shift
		if c < 0x80 {
			return n, length
		}
	}
}

// called is a module whose function calls another in a loop.
func called(call ...byte) []byte {
	m := base()
	m.Table(Limits(2, -1)...)
	m.Export("f", m.Function(0, 0, I32, Join([]byte{Loop, Void}, call, []byte{Br, 0, End})...))
	m.Function(0, 1, I32, LocalGet, 0, I32Const, 1, I32Add, LocalSet, 0)
	m.Elements(1)
	return m.Bytes()
}

// starting is a module that runs something when an instance is created.
func starting(code ...byte) []byte {
	m := base()
	m.Memory(Limits(1, -1)...)
	m.Start(m.Function(0, 0, I32, code...))
	return m.Bytes()
}

// chain is a module whose function makes a list that grows.
func chain() []byte {
	m := base()
	m.RawType(0x5f, 1, 0x63, 1, 1)               // a structure with a field for another one of its kind
	m.RawFunction(0, Join([]byte{1, 1, 0x63, 1}, // a variable for the list
		[]byte{Loop, Void, LocalGet, 0, 0xfb, 0, 1}, // struct.new
		[]byte{LocalSet, 0, Br, 0, End, End}))
	m.Export("f", 0)
	return m.Bytes()
}

// arrays is a module whose function makes arrays of 100 MB and keeps the last.
func arrays() []byte {
	m := base()
	m.RawType(0x5e, I32, 1)
	m.RawFunction(0, Join([]byte{1, 1, 0x63, 1}, []byte{Loop, Void, I32Const}, S32(25_000_000),
		[]byte{0xfb, 7, 1, LocalSet, 0, Br, 0, End, End}))
	m.Export("f", 0)
	return m.Bytes()
}

// arrayFill is a module whose function fills an array of 10 MB again and again.
func arrayFill() []byte {
	m := base()
	m.RawType(0x5e, I32, 1)
	m.RawFunction(0, Join([]byte{1, 1, 0x63, 1, I32Const}, S32(2_500_000), []byte{0xfb, 7, 1, LocalSet, 0, Loop, Void,
		LocalGet, 0, I32Const, 0, I32Const, 7, I32Const}, S32(2_500_000), []byte{0xfb, 0x10, 1, Br, 0, End, End}))
	m.Export("f", 0)
	return m.Bytes()
}

// throwing is a module whose function throws and catches.
func throwing() []byte {
	m := base()
	m.Tag(0)
	m.Export("f", m.Function(0, 0, I32, Loop, Void, 0x06, Void, 0x08, 0, 0x19, End, Br, 0, End))
	return m.Bytes()
}
