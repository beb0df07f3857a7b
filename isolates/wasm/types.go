package wasm

// form is what a type is made of.
type form uint8

const (
	function form = iota + 1
	structure
	array
)

// typ is what the walk keeps of a type: how many values an instruction takes and gives that names it.
type typ struct {
	form    form
	params  uint16 // fields, if it is a structure
	results uint16
	refs    uint16 // parameters that are references
}

// Codes of types, as they are in a module.
const (
	codeFunc, codeStruct, codeArray       = 0x60, 0x5f, 0x5e
	codeSub, codeFinal, codeRec           = 0x50, 0x4f, 0x4e
	codeI8, codeI16                       = 0x78, 0x77
	codeI32, codeV128                     = 0x7f, 0x7b
	codeRef, codeRefNull, codeVoid        = 0x64, 0x63, 0x40
	firstHeap, lastHeap             int64 = -0x17, -0x0c // exn to noexn, as numbers of 33 bits
)

// readTypes reads the types. Groups of recursive types are flat in the numbering.
func (m *module) readTypes() {
	r := &m.reader
	from := r.at
	m.info.TypeBytes = r.end - from
	if !r.atMost(from, "bytes of the type section", int64(r.end-from), MaxTypeBytes) {
		return
	}
	for n := r.count("types", MaxTypes); n > 0 && r.err == nil; n-- {
		if r.more() && r.b[r.at] == codeRec {
			at := r.at
			r.at++
			group := r.count("types", MaxTypes)
			if !r.atMost(at, "types", int64(len(m.types)+group), MaxTypes) {
				return
			}
			for ; group > 0 && r.err == nil; group-- {
				m.subType()
			}
			continue
		}
		if !r.atMost(r.at, "types", int64(len(m.types)+1), MaxTypes) {
			return
		}
		m.subType()
	}
	m.info.Types = len(m.types)
}

// subType reads one type, with the type that it extends.
func (m *module) subType() {
	r := &m.reader
	if r.more() && (r.b[r.at] == codeSub || r.b[r.at] == codeFinal) {
		r.at++
		for n := r.count("types that a type extends", 1); n > 0; n-- {
			r.u32()
		}
	}
	at := r.at
	t := typ{}
	switch code := r.byte(); code {
	case codeFunc:
		t.form = function
		params, refs := r.values("parameters")
		results, _ := r.values("results")
		if !r.atMost(at, "parameters and results of a function", int64(params+results), MaxSignature) {
			return
		}
		t.params, t.results, t.refs = uint16(params), uint16(results), uint16(refs)
	case codeStruct:
		t.form = structure
		n := r.count("fields of a structure", MaxFields)
		t.params = uint16(n)
		for ; n > 0 && r.err == nil; n-- {
			r.field()
		}
	case codeArray:
		t.form = array
		r.field()
	default:
		r.fail(at, "type 0x%02x is unknown", code)
	}
	m.types = append(m.types, t)
}

// values reads a list of types of values, and returns how many there are, and how many are references.
func (r *reader) values(what string) (n, refs int) {
	n = r.count(what+" of a function", MaxSignature)
	for i := 0; i < n && r.err == nil; i++ {
		if r.valueType() {
			refs++
		}
	}
	return n, refs
}

// field reads the type of a field and whether it changes.
func (r *reader) field() {
	if r.more() && (r.b[r.at] == codeI8 || r.b[r.at] == codeI16) {
		r.at++
	} else {
		r.valueType()
	}
	r.flag("whether a field changes", 1)
}

// flag reads a byte from 0 to most.
func (r *reader) flag(what string, most byte) byte {
	at := r.at
	n := r.byte()
	if n > most {
		r.fail(at, "%s is 0x%02x, from 0 to %d allowed", what, n, most)
	}
	return n
}

// valueType reads the type of a value, and says whether it is a reference rather than a number or a vector.
func (r *reader) valueType() bool {
	if r.more() && r.b[r.at] <= codeI32 && r.b[r.at] >= codeV128 {
		r.at++
		return false
	}
	r.refType()
	return true
}

// refType reads the type of a reference, in its short or its long form.
func (r *reader) refType() {
	at := r.at
	switch code := r.byte(); {
	case code == codeRef || code == codeRefNull:
		r.heapType()
	case code < 0x80 && isHeap(int64(int8(code<<1)>>1)):
	default:
		r.fail(at, "type 0x%02x is unknown", code)
	}
}

// heapType reads what a reference refers to: the number of a type, or one of those that have a name.
func (r *reader) heapType() {
	at := r.at
	if t := r.signed(33); t < 0 && !isHeap(t) {
		r.fail(at, "type 0x%02x is unknown", t&0x7f)
	}
}

// isHeap is true for func, extern, any, eq, i31, struct, array, exn and their bottom types.
func isHeap(t int64) bool { return t >= firstHeap && t <= lastHeap }

// typeOf returns a type by its number, which has to be of that form.
func (m *module) typeOf(at int, n uint32, of form) typ {
	if int64(n) >= int64(len(m.types)) || m.types[n].form != of {
		m.fail(at, "type %d is none of the %d types, or is of another form", n, len(m.types))
		return typ{}
	}
	return m.types[n]
}

// blockType reads the type of a block and returns how many values the block takes and gives.
func (m *module) blockType() (params, results int) {
	r := &m.reader
	if !r.more() {
		r.byte()
		return 0, 0
	}
	at := r.at
	switch code := r.b[at]; {
	case code == codeVoid:
		r.at++
		return 0, 0
	case code&0xc0 == 0x40:
		r.valueType()
		return 0, 1
	}
	n := r.signed(33)
	if n < 0 {
		r.fail(at, "type %d of a block is negative", n)
		return 0, 0
	}
	t := m.typeOf(at, uint32(min(n, 1<<32-1)), function)
	return int(t.params), int(t.results)
}
