package wasm

// immediate is what follows the code of an instruction.
type immediate uint8

const (
	unknown   immediate = iota // there is no such instruction
	control                    // body.control knows
	none                       // nothing
	index                      // the number of a local, global, table, memory, function, type or segment
	indices                    // two of them
	access                     // alignment and offset of an access to memory
	laneOf                     // those, and a byte for the lane of a vector
	bytes1                     // a byte
	bytes4                     // 4 bytes
	bytes8                     // 8 bytes
	bytes16                    // 16 bytes
	signed32                   // a signed number
	signed64                   // a signed number
	reference                  // a heap type
	values                     // a list of types
)

// op is an instruction: what follows its code, how many values it takes from the stack, how many it puts there. For
// control, body.control knows those too.
type op struct {
	immediate immediate
	pop, push int8
	calls     bool // other code runs: of V8, or of the module
	bulk      bool // how long it takes depends on its values, and nothing interrupts it
}

// is describes an instruction that becomes machine code in its place.
func is(i immediate, pop, push int8) op { return op{immediate: i, pop: pop, push: push} }

// calls marks an instruction for which V8 runs code of its own, or may.
func calls(i immediate, pop, push int8) op {
	return op{immediate: i, pop: pop, push: push, calls: true}
}

// bulk marks one of those that fills, copies or grows as much as its values say.
func bulk(i immediate, pop, push int8) op {
	return op{immediate: i, pop: pop, push: push, calls: true, bulk: true}
}

// opRow is a range of instructions that are alike.
type opRow struct {
	from, to uint32
	op
}

// prefixes are the first bytes of instructions with two codes.
const (
	prefixGC, prefixMisc, prefixVector, prefixAtomic = 0xfb, 0xfc, 0xfd, 0xfe
)

var plainOps = table(0x100, []opRow{
	{0x00, 0x00, is(control, 0, 0)},  // unreachable
	{0x01, 0x01, is(none, 0, 0)},     // nop
	{0x02, 0x11, is(control, 0, 0)},  // block to call_indirect
	{0x12, 0x13, op{}},               // tail calls
	{0x14, 0x14, is(control, 0, 0)},  // call_ref
	{0x18, 0x19, is(control, 0, 0)},  // delegate, catch_all
	{0x1a, 0x1a, is(none, 1, 0)},     // drop
	{0x1b, 0x1b, is(none, 3, 1)},     // select
	{0x1c, 0x1c, is(values, 3, 1)},   // select with a type
	{0x1f, 0x1f, is(control, 0, 0)},  // try_table
	{0x20, 0x20, is(index, 0, 1)},    // local.get
	{0x21, 0x21, is(index, 1, 0)},    // local.set
	{0x22, 0x22, is(index, 1, 1)},    // local.tee
	{0x23, 0x23, is(index, 0, 1)},    // global.get
	{0x24, 0x24, is(index, 1, 0)},    // global.set
	{0x25, 0x25, calls(index, 1, 1)}, // table.get
	{0x26, 0x26, calls(index, 2, 0)}, // table.set
	{0x28, 0x35, is(access, 1, 1)},   // loads
	{0x36, 0x3e, is(access, 2, 0)},   // stores
	{0x3f, 0x3f, is(index, 0, 1)},    // memory.size
	{0x40, 0x40, bulk(index, 1, 1)},  // memory.grow
	{0x41, 0x41, is(signed32, 0, 1)},
	{0x42, 0x42, is(signed64, 0, 1)},
	{0x43, 0x43, is(bytes4, 0, 1)},
	{0x44, 0x44, is(bytes8, 0, 1)},
	{0x45, 0x45, is(none, 1, 1)},
	{0x46, 0x4f, is(none, 2, 1)},
	{0x50, 0x50, is(none, 1, 1)},
	{0x51, 0x66, is(none, 2, 1)},
	{0x67, 0x69, is(none, 1, 1)},
	{0x6a, 0x78, is(none, 2, 1)},
	{0x79, 0x7b, is(none, 1, 1)},
	{0x7c, 0x8a, is(none, 2, 1)},
	{0x8b, 0x91, is(none, 1, 1)},
	{0x92, 0x98, is(none, 2, 1)},
	{0x99, 0x9f, is(none, 1, 1)},
	{0xa0, 0xa6, is(none, 2, 1)},
	{0xa7, 0xc4, is(none, 1, 1)},
	{0xd0, 0xd0, is(reference, 0, 1)}, // ref.null
	{0xd1, 0xd1, is(none, 1, 1)},      // ref.is_null
	{0xd2, 0xd2, calls(index, 0, 1)},  // ref.func
	{0xd3, 0xd3, is(none, 2, 1)},      // ref.eq
	{0xd4, 0xd4, is(none, 1, 1)},      // ref.as_non_null
	{0xd5, 0xd6, is(control, 0, 0)},   // br_on_null, br_on_non_null
	{prefixGC, prefixVector, is(control, 0, 0)},
})

var miscOps = table(0x12, []opRow{
	{0x00, 0x07, is(none, 1, 1)},      // saturating conversions
	{0x08, 0x08, bulk(indices, 3, 0)}, // memory.init
	{0x09, 0x09, calls(index, 0, 0)},  // data.drop
	{0x0a, 0x0a, bulk(indices, 3, 0)}, // memory.copy
	{0x0b, 0x0b, bulk(index, 3, 0)},   // memory.fill
	{0x0c, 0x0c, bulk(indices, 3, 0)}, // table.init
	{0x0d, 0x0d, calls(index, 0, 0)},  // elem.drop
	{0x0e, 0x0e, bulk(indices, 3, 0)}, // table.copy
	{0x0f, 0x0f, bulk(index, 2, 1)},   // table.grow
	{0x10, 0x10, is(index, 0, 1)},     // table.size
	{0x11, 0x11, bulk(index, 3, 0)},   // table.fill
})

var gcOps = table(0x1f, []opRow{
	{0x00, 0x00, is(control, 0, 0)},      // struct.new
	{0x01, 0x01, calls(index, 0, 1)},     // struct.new_default
	{0x02, 0x04, is(indices, 1, 1)},      // struct.get
	{0x05, 0x05, is(indices, 2, 0)},      // struct.set
	{0x06, 0x06, bulk(index, 2, 1)},      // array.new
	{0x07, 0x07, bulk(index, 1, 1)},      // array.new_default
	{0x08, 0x08, is(control, 0, 0)},      // array.new_fixed
	{0x09, 0x0a, bulk(indices, 2, 1)},    // array.new_data, array.new_elem
	{0x0b, 0x0d, is(index, 2, 1)},        // array.get
	{0x0e, 0x0e, is(index, 3, 0)},        // array.set
	{0x0f, 0x0f, is(none, 1, 1)},         // array.len
	{0x10, 0x10, bulk(index, 4, 0)},      // array.fill
	{0x11, 0x11, bulk(indices, 5, 0)},    // array.copy
	{0x12, 0x13, bulk(indices, 4, 0)},    // array.init_data, array.init_elem
	{0x14, 0x17, calls(reference, 1, 1)}, // ref.test, ref.cast
	{0x18, 0x19, is(control, 0, 0)},      // br_on_cast, br_on_cast_fail
	{0x1a, 0x1e, calls(none, 1, 1)},      // conversions
})

var vectorOps = table(0x114, []opRow{
	{0x00, 0x0a, is(access, 1, 1)},
	{0x0b, 0x0b, is(access, 2, 0)},
	{0x0c, 0x0c, is(bytes16, 0, 1)},
	{0x0d, 0x0d, is(bytes16, 2, 1)},
	{0x0e, 0x0e, is(none, 2, 1)},
	{0x0f, 0x14, is(none, 1, 1)},
	{0x15, 0x22, is(bytes1, 2, 1)}, // lanes: replaced
	{0x15, 0x16, is(bytes1, 1, 1)}, // lanes: extracted
	{0x18, 0x19, is(bytes1, 1, 1)},
	{0x1b, 0x1b, is(bytes1, 1, 1)},
	{0x1d, 0x1d, is(bytes1, 1, 1)},
	{0x1f, 0x1f, is(bytes1, 1, 1)},
	{0x21, 0x21, is(bytes1, 1, 1)},
	{0x23, 0xff, is(none, 2, 1)},
	{0x4d, 0x4d, is(none, 1, 1)},
	{0x52, 0x52, is(none, 3, 1)},
	{0x53, 0x53, is(none, 1, 1)},
	{0x54, 0x57, is(laneOf, 2, 1)},
	{0x58, 0x5b, is(laneOf, 2, 0)},
	{0x5c, 0x5d, is(access, 1, 1)},
	{0x5e, 0x64, is(none, 1, 1)},
	{0x67, 0x6a, is(none, 1, 1)},
	{0x74, 0x75, is(none, 1, 1)},
	{0x7a, 0x7a, is(none, 1, 1)},
	{0x7c, 0x81, is(none, 1, 1)},
	{0x83, 0x84, is(none, 1, 1)},
	{0x87, 0x8a, is(none, 1, 1)},
	{0x94, 0x94, is(none, 1, 1)},
	{0x9a, 0x9a, op{}},
	{0xa0, 0xa1, is(none, 1, 1)},
	{0xa2, 0xa2, op{}},
	{0xa3, 0xa4, is(none, 1, 1)},
	{0xa5, 0xa6, op{}},
	{0xa7, 0xaa, is(none, 1, 1)},
	{0xaf, 0xb0, op{}},
	{0xb2, 0xb4, op{}},
	{0xbb, 0xbb, op{}},
	{0xc0, 0xc1, is(none, 1, 1)},
	{0xc2, 0xc2, op{}},
	{0xc3, 0xc4, is(none, 1, 1)},
	{0xc5, 0xc6, op{}},
	{0xc7, 0xca, is(none, 1, 1)},
	{0xcf, 0xd0, op{}},
	{0xd2, 0xd4, op{}},
	{0xe0, 0xe1, is(none, 1, 1)},
	{0xe2, 0xe2, op{}},
	{0xe3, 0xe3, is(none, 1, 1)},
	{0xec, 0xed, is(none, 1, 1)},
	{0xee, 0xee, op{}},
	{0xef, 0xef, is(none, 1, 1)},
	{0xf8, 0xff, is(none, 1, 1)},
	{0x100, 0x113, is(none, 2, 1)}, // relaxed
	{0x101, 0x104, is(none, 1, 1)},
	{0x105, 0x10c, is(none, 3, 1)},
	{0x113, 0x113, is(none, 3, 1)},
})

// table makes a table of so many instructions. Later rows replace earlier ones.
func table(size int, rows []opRow) []op {
	ops := make([]op, size)
	for _, row := range rows {
		for code := row.from; code <= row.to; code++ {
			ops[code] = row.op
		}
	}
	return ops
}
