package wasm_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/wasmtest"
	"github.com/pinwheel-run/pinwheel/isolates/wasm"
)

const head = "\x00asm\x01\x00\x00\x00"

// everything is a module with something of each kind.
func everything() []byte {
	m := &wasmtest.Module{}
	void := m.Type("", "")
	two := m.Type("\x7f\x7f", "\x7f")
	imported := m.ImportFunction("env", "add", two)
	m.ImportMemory("env", "memory", wasmtest.Limits(2, 10)...)
	m.Function(void, 3, wasmtest.I32,
		wasmtest.Block, wasmtest.Void, wasmtest.I32Const, 1, wasmtest.I32Const, 2, wasmtest.Call, byte(imported),
		wasmtest.BrIf, 0, wasmtest.End)
	m.Table(wasmtest.Limits(7, 9)...)
	m.Tag(void)
	m.Global(wasmtest.I32, wasmtest.I32Const, 5)
	m.Export("f", 1)
	m.Start(1)
	m.Elements(1, 1)
	m.Data(0, "hello")
	m.Custom("name", []byte("x"))
	return m.Bytes()
}

func TestInfo(t *testing.T) {
	info, err := wasm.Check(everything())
	require.NoError(t, err)
	require.Equal(t, wasm.Memory{Pages: 2, Max: 10, Imported: true}, *info.Memory)
	info.Memory = nil
	// The block and its br_if cost 3 each: nothing is on the stack at them. Two values are there at the call, which
	// rounds to one; so do the 25 pairs of values.
	require.Equal(t, wasm.Info{Code: 19, Data: 5, Types: 2, TypeBytes: 10, Functions: 2, Work: 7, Compiled: 7,
		WorkFunction: 7,
		Tables:       1, TableEntries: 7, TableMax: 9, Globals: 1, Tags: 1, Imports: 2, Exports: 1, Elements: 2, Start: true}, info)
	empty, err := wasm.Check([]byte(head))
	require.NoError(t, err)
	require.Zero(t, empty)
}

// The work of a function grows as V8's compilers do: with values at branches, with references at calls, with pairs of
// values that live at the same time.
func TestWork(t *testing.T) {
	work := func(variables int, of byte, code ...byte) int64 {
		m := &wasmtest.Module{}
		m.Type("", "")
		m.Function(0, variables, of, code...)
		info, err := wasm.Check(m.Bytes())
		require.NoError(t, err)
		require.Equal(t, info.Work, info.WorkFunction)
		return info.Work
	}
	const pairs = 100 * 100 / 32
	require.EqualValues(t, pairs, work(100, wasmtest.I32))
	require.EqualValues(t, pairs+20*100, work(100, wasmtest.I32, wasmtest.Repeat(20, wasmtest.Block, wasmtest.Void,
		wasmtest.End)...))
	const pairsOf101 = 101 * 101 / 32 // the index is on the stack
	require.EqualValues(t, pairsOf101+100+3*100,
		work(100, wasmtest.I32, wasmtest.Block, wasmtest.Void, wasmtest.LocalGet, 0,
			wasmtest.BrTable, 2, 0, 0, 0, wasmtest.End))
	require.EqualValues(t, pairs+64*100/32, work(100, wasmtest.I32, wasmtest.Repeat(64, wasmtest.Call, 0)...))
	require.EqualValues(t, pairs+64*100/32+64*100/2, work(100, wasmtest.ExternRef, wasmtest.Repeat(64, wasmtest.Call,
		0)...))
	deep := wasmtest.Join(wasmtest.Repeat(100, wasmtest.I32Const, 0), []byte{wasmtest.Loop, wasmtest.Void, wasmtest.End},
		wasmtest.Repeat(100, wasmtest.Drop))
	require.EqualValues(t, pairs+100, work(0, wasmtest.I32, deep...))
}

// What is wrong is named with its place.
func TestErrors(t *testing.T) {
	section := func(id byte, contents ...byte) string { return string(wasmtest.Section(id, contents)) }
	const oneType = "\x01\x04\x01\x60\x00\x00"
	code := func(body ...byte) string {
		return oneType + "\x03\x02\x01\x00" + section(10, wasmtest.Join([]byte{1}, wasmtest.U32(len(body)), body)...)
	}
	tooLong := wasmtest.Join([]byte{0, 0x42}, wasmtest.Repeat(9, 0x80), []byte{2})
	for module, want := range map[string]string{
		"":                                                 "byte 0: not a WebAssembly module of version 1, which begins with 00 61 73 6d 01 00 00 00",
		"\x00asm\x02\x00\x00\x00":                          "byte 0: not a WebAssembly module of version 1, which begins with 00 61 73 6d 01 00 00 00",
		"\x00asm\x0d\x00\x01\x00":                          "byte 0: not a WebAssembly module of version 1, which begins with 00 61 73 6d 01 00 00 00",
		head + "\x01":                                      "byte 9: ends in the middle",
		head + "\x01\x05\x00":                              "byte 8: section 1 has 5 bytes, 1 are left",
		head + section(1, 0, 0):                            "byte 11: 1 bytes are left at the end of section 1",
		head + section(14, 0):                              "byte 8: section 14 is unknown",
		head + section(3, 0) + oneType:                     "byte 11: section 1 comes twice, or too late",
		head + oneType + oneType:                           "byte 14: section 1 comes twice, or too late",
		head + section(0, 5, 'a'):                          "byte 10: bytes of a name: 5, but 1 bytes are left",
		head + section(0, 1, 0xff):                         "byte 10: a name that is not UTF-8",
		head + section(1, 1, 0x40):                         "byte 11: type 0x40 is unknown",
		head + section(1, 1, 0x60, 1, 0x62):                "byte 13: type 0x62 is unknown",
		head + section(1, 0xff, 0xff, 0xff, 0xff, 0x1f):    "byte 10: a number of more than 32 bits",
		head + section(1, 0xff, 0xff, 0xff, 0xff, 0x0f):    "byte 10: types: 4294967295, at most 10000 allowed",
		head + section(1, 5):                               "byte 10: types: 5, but 0 bytes are left",
		head + section(3, 1, 0):                            "byte 11: type 0 is none of the 0 types, or is of another form",
		head + section(1, 1, 0x5f, 0) + section(3, 1, 0):   "byte 16: type 0 is none of the 1 types, or is of another form",
		head + oneType + section(3, 1, 0):                  "byte 18: 1 functions are declared, 0 have a body",
		head + oneType + section(10, 1, 2, 0, 0x0b):        "byte 16: 0 functions are declared, 1 have a body",
		head + section(4, 1, 0x70, 1, 5, 4):                "byte 14: entries of a table: 4 at most, 5 at first",
		head + section(5, 1, 8, 0):                         "byte 11: flags 0x08 of pages of a memory are unknown",
		head + section(5, 1, 0, 0x81, 0x80, 0x04):          "byte 12: pages of a memory at first: 65537, at most 65536 allowed",
		head + section(6, 1, 0x7f, 2, 0x41, 0, 0x0b):       "byte 12: whether a global changes is 0x02, from 0 to 1 allowed",
		head + section(6, 1, 0x7f, 0, 0x02, 0x40):          "byte 13: opcode 0x02 in a constant",
		head + section(6, 1, 0x7f, 0, 0xfd, 0x0d):          "byte 13: opcode 0xfd 0x0d in a constant",
		head + section(6, 1, 0x7f, 0, 0x41, 0):             "byte 15: ends in the middle",
		head + section(7, 1, 1, 'a', 5, 0):                 "byte 13: kind of an export is 0x05, from 0 to 4 allowed",
		head + section(9, 1, 8):                            "byte 11: flags of an element segment: 8, at most 7 allowed",
		head + section(11, 1, 3):                           "byte 11: flags of a data segment: 3, at most 2 allowed",
		head + section(11, 1, 1, 9, 'x'):                   "byte 12: bytes of a data segment: 9, but 1 bytes are left",
		head + section(12, 1):                              "byte 11: 1 data segments are announced, 0 are there",
		head + code(0):                                     "byte 23: ends in the middle",
		head + code(0, 0x0b, 0x0b):                         "byte 24: 1 bytes follow the end of function 0",
		head + code(1, 1, 0x40, 0x0b):                      "byte 24: type 0x40 is unknown",
		head + code(0, 0x0c, 1, 0x0b):                      "byte 24: a branch to block 1 of 1",
		head + code(0, 0x05, 0x0b):                         "byte 23: opcode 0x05 where no block takes it",
		head + code(0, 0x18, 0, 0x0b):                      "byte 23: opcode 0x18 where no block takes it",
		head + code(0, 0x10, 1, 0x0b):                      "byte 24: function 1 of 1",
		head + code(0, 0x11, 1, 0, 0x0b):                   "byte 24: type 1 is none of the 1 types, or is of another form",
		head + code(0, 0x08, 0, 0x0b):                      "byte 24: tag 0 of 0",
		head + code(0, 0x02, 0x01, 0x0b, 0x0b):             "byte 24: type 1 is none of the 1 types, or is of another form",
		head + code(0, 0x41, 0xff, 0xff, 0xff, 0xff, 0x4f): "byte 24: a number of more than 32 bits",
		head + code(tooLong...):                            "byte 24: a number of more than 64 bits",
		head + code(0, 0x27):                               "byte 23: opcode 0x27 is unknown or not supported",
		head + code(0, 0xfc, 0x12):                         "byte 23: opcode 0xfc 0x12 is unknown or not supported",
		head + code(0, 0xfd, 0x9a, 0x01):                   "byte 23: opcode 0xfd 0x9a is unknown or not supported",
		head + code(0, 0xfb, 0x80, 0x01):                   "byte 23: opcode 0xfb 0x80 is unknown or not supported",
		head + code(0, 0xfb, 0x18, 4):                      "byte 25: flags of a cast is 0x04, from 0 to 3 allowed",
		head + code(0, 0x44, 0, 0):                         "byte 24: 8 bytes follow, 2 are left",
	} {
		info, err := wasm.Check([]byte(module))
		require.EqualError(t, err, want, "%x", module)
		require.Zero(t, info)
	}
}

// instructions are codes that no module of the packages and of the specification's tests of 2022 has. In code that no
// control comes to, V8 takes any operands: each of them is valid there.
var instructions = map[string][]byte{
	"throw": {0x08, 0}, "try, catch, rethrow": {0x06, 0x40, 0x07, 0, 0x09, 0, 0x0b},
	"try, catch_all":  {0x06, 0x40, 0x19, 0x0b},
	"try, delegate":   {0x06, 0x40, 0x18, 0},
	"call_ref":        {0x14, 0},
	"ref.eq":          {0xd3, 0x1a},
	"ref.as_non_null": {0xd0, 0x70, 0xd4, 0x1a},
	"br_on_null":      {0xd0, 0x70, 0xd5, 0, 0x1a}, "br_on_non_null": {0x02, 0x70, 0xd0, 0x70, 0xd6, 0, 0x00, 0x0b, 0x1a},
	"a block of a reference": {0x02, 0x63, 0x6e, 0x00, 0x0b, 0x1a},
	"a select of a type":     {0x1c, 1, 0x63, 1, 0x1a},
	"struct.new":             {0xfb, 0, 1, 0x1a}, "struct.new_default": {0xfb, 1, 1, 0x1a},
	"struct.get": {0xfb, 2, 1, 0, 0x1a}, "struct.get_s": {0xfb, 3, 1, 1, 0x1a}, "struct.get_u": {0xfb, 4, 1, 1, 0x1a},
	"struct.set": {0xfb, 5, 1, 0},
	"array.new":  {0xfb, 6, 2, 0x1a}, "array.new_default": {0xfb, 7, 2, 0x1a}, "array.new_fixed": {0xfb, 8, 2, 3, 0x1a},
	"array.new_data": {0xfb, 9, 2, 0, 0x1a}, "array.new_elem": {0xfb, 10, 3, 0, 0x1a},
	"array.get": {0xfb, 11, 3, 0x1a}, "array.get_s": {0xfb, 12, 2, 0x1a}, "array.get_u": {0xfb, 13, 2, 0x1a},
	"array.set": {0xfb, 14, 2}, "array.len": {0xfb, 15, 0x1a}, "array.fill": {0xfb, 16, 2}, "array.copy": {0xfb, 17, 2, 2},
	"array.init_data": {0xfb, 18, 2, 0}, "array.init_elem": {0xfb, 19, 3, 0},
	"ref.test": {0xfb, 20, 1, 0x1a}, "ref.test null": {0xfb, 21, 0x6d, 0x1a}, "ref.cast": {0xfb, 22, 1, 0x1a},
	"ref.cast null":    {0xfb, 23, 0x6c, 0x1a},
	"br_on_cast":       {0x02, 0x63, 1, 0x00, 0xfb, 24, 3, 0, 0x6e, 1, 0x1a, 0x00, 0x0b, 0x1a},
	"br_on_cast_fail":  {0x02, 0x63, 0x6e, 0x00, 0xfb, 25, 3, 0, 0x6e, 1, 0x1a, 0x00, 0x0b, 0x1a},
	"any.convert":      {0xfb, 26, 0x1a},
	"extern.convert":   {0xfb, 27, 0x1a},
	"ref.i31":          {0xfb, 28, 0x1a},
	"i31.get_s":        {0xfb, 29, 0x1a},
	"i31.get_u":        {0xfb, 30, 0x1a},
	"a padded code":    {0xfb, 0x9e, 0x00, 0x1a},
	"relaxed_swizzle":  {0xfd, 0x80, 0x02, 0x1a},
	"relaxed_trunc":    {0xfd, 0x81, 0x02, 0x1a},
	"relaxed_madd":     {0xfd, 0x85, 0x02, 0x1a},
	"relaxed_dot_add":  {0xfd, 0x93, 0x02, 0x1a},
	"memory by number": {0x28, 0x42, 0, 0, 0x1a},
	"table.grow":       {0xfc, 0x0f, 0, 0x1a},
}

// inModule puts an instruction into a function, where no control comes to it.
func inModule(code []byte) []byte {
	m := &wasmtest.Module{}
	void := m.Type("", "")
	m.RawType(0x5f, 2, wasmtest.I32, 1, 0x78, 0) // a structure
	m.RawType(0x5e, 0x78, 1)                     // an array of bytes
	m.RawType(0x5e, wasmtest.FuncRef, 1)         // an array of functions
	m.Table(wasmtest.Limits(1, 1)...)
	m.Memory(wasmtest.Limits(1, 1)...)
	m.Tag(void)
	m.Elements()
	m.Data(0, "")
	m.Count(1)
	m.Function(void, 0, wasmtest.I32, wasmtest.Join([]byte{wasmtest.Unreachable}, code)...)
	m.Function(void, 0, wasmtest.I32)
	return m.Bytes()
}

// Instructions of exceptions, of garbage collection and of relaxed vectors are read to their end. WASM_DUMP names a
// directory to write the modules to, for who wants to show them to an engine.
func TestInstructions(t *testing.T) {
	for name, code := range instructions {
		module := inModule(code)
		info, err := wasm.Check(module)
		require.NoError(t, err, name)
		require.Equal(t, 2, info.Functions)
		if dir := os.Getenv("WASM_DUMP"); dir != "" {
			require.NoError(t, os.WriteFile(dir+"/"+strings.ReplaceAll(name, " ", "_")+".wasm", module, 0o600))
		}
		// It ends where what follows it begins: here something that is no instruction.
		module = inModule(append(bytes.Clone(code), 0x27))
		at := bytes.LastIndexByte(module, 0x27)
		_, err = wasm.Check(module)
		require.EqualError(t, err, fmt.Sprintf("byte %d: opcode 0x27 is unknown or not supported", at), name)
	}
}

// What Check keeps is bounded by the module.
func TestMemory(t *testing.T) {
	module := wasmtest.ManyFunctions(wasm.MaxFunctions, 0, 0)
	sizes := testing.AllocsPerRun(1, func() {
		_, err := wasm.Check(module)
		require.NoError(t, err)
	})
	require.Less(t, sizes, 100.0, "allocations")
}

func BenchmarkCheck(b *testing.B) {
	module := wasmtest.ManyFunctions(100, 100, 5_000)
	b.SetBytes(int64(len(module)))
	for b.Loop() {
		if _, err := wasm.Check(module); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzCheck: nothing panics. What passes is within all bounds, and reads the same with custom sections before and
// behind it; without its last byte, it does not pass.
func FuzzCheck(f *testing.F) {
	f.Add(everything())
	for _, code := range instructions {
		f.Add(inModule(code))
	}
	for _, bomb := range wasmtest.Running {
		f.Add(bomb.Module())
	}
	for _, bomb := range wasmtest.Compiled {
		if module := bomb.Module(); len(module) < 1000 {
			f.Add(module)
		}
	}
	f.Fuzz(func(t *testing.T, module []byte) {
		info, err := wasm.Check(module)
		if err != nil {
			e := err.(*wasm.Error) //nolint:errorlint // that it is one is what is tested
			if e.Offset < 0 || e.Offset > len(module) || e.Reason == "" || fmt.Sprint(info) != fmt.Sprint(wasm.Info{}) {
				t.Fatalf("%d bytes: %v, %+v", len(module), err, info)
			}
			return
		}
		if info.WorkFunction > min(info.Work, wasm.MaxWorkFunction) || info.Work > wasm.MaxWorkModule ||
			info.Functions > wasm.MaxFunctions || info.Types > wasm.MaxTypes || info.TableMax > wasm.MaxTable ||
			info.TableEntries > info.TableMax || info.Code > len(module) || info.Data > len(module) {
			t.Fatalf("passes: %+v", info)
		}
		custom := wasmtest.Section(0, []byte("\x01x1234"))
		body := module[len(head):]
		for _, same := range [][]byte{wasmtest.Join([]byte(head), custom, body), wasmtest.Join(module, custom)} {
			again, err := wasm.Check(same)
			if err != nil && strings.Contains(err.Error(), "custom sections: 1001") {
				continue
			}
			if err != nil || (info.Memory == nil) != (again.Memory == nil) ||
				info.Memory != nil && *info.Memory != *again.Memory {
				t.Fatalf("with a custom section: %v, %+v", err, again)
			}
			again.Memory = info.Memory
			if again != info {
				t.Fatalf("with a custom section: %+v, without: %+v", again, info)
			}
		}
		if _, err := wasm.Check(bytes.Clone(module[:len(module)-1])); err == nil {
			t.Fatal("passes without its last byte")
		}
	})
}
