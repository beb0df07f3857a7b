package wasm

// body is a walk through the instructions of a function, or of a constant.
type body struct {
	*module
	constant bool // a constant: few instructions are allowed, and no blocks
	locals   int  // variables, with the parameters
	refs     int  // those of them that are references
	height   int  // values on the stack
	highest  int
	work     int64 // for branches
	calls    int64 // for calls
	bulk     int64 // instructions that fill, copy or grow
}

// A compiler does the most where control splits: it copies what it knows of each value. A call costs it half of that
// for each reference, which the collector may have to find there, and little for each number. Registers are shared
// out among values that live at the same time, two by two. The parts are those that V8 13.6 takes for programs that
// do one of them.
const (
	callRefs    = 2  // one for so many references
	callNumbers = 32 // one for so many numbers
	pairs       = 32 // one for so many pairs of values

	workOfBulk = 2000 // of an instruction that may fill 512 MiB at once
)

// total is what compiling the function costs at most, and what it may do that nothing interrupts.
func (b *body) total() int64 { return b.compiled() + b.bulk*workOfBulk }

// compiled is what compiling the function costs at most.
func (b *body) compiled() int64 {
	values := int64(b.locals + b.highest)
	return b.work + b.calls/callNumbers + values*values/pairs
}

// frame is a block that is open.
type frame struct {
	base    int // values on the stack below the block
	params  int
	results int
	loop    bool // a branch to it goes to its beginning
	try     bool // the old kind, which delegate may end
}

// open begins a block.
func (b *body) open(f frame) {
	if b.constant {
		b.fail(b.at-1, "a block in a constant")
		return
	}
	if !b.atMost(b.at, "blocks within each other", int64(len(b.frames)), MaxNesting) {
		return
	}
	b.pop(f.params)
	f.base = b.height
	b.push(f.params)
	b.frames = append(b.frames, f)
}

// pop takes values from the stack, and none of those that are below the block. Too few means that V8 refuses the
// module, or that no control comes here.
func (b *body) pop(n int) { b.height = max(b.height-n, b.top().base) }

// top is the innermost open block. There always is one while instructions are read.
func (b *body) top() *frame { return &b.frames[len(b.frames)-1] }

// leave marks what follows as code that no control comes to.
func (b *body) leave() { b.height = b.top().base }

// charge counts what a compiler does where control splits: for each value of the function, and each that goes along.
func (b *body) charge(along int) { b.work += int64(b.locals + b.height + along) }

// chargeCall counts what a compiler does where other code runs. Values on the stack count as references.
func (b *body) chargeCall() {
	b.calls += int64(b.locals) + int64(b.refs+b.height)*(callNumbers/callRefs)
}

// push puts values on the stack.
func (b *body) push(n int) {
	b.height += n
	b.highest = max(b.highest, b.height)
}

// label reads which block a branch goes to, and charges for it.
func (b *body) label() {
	at := b.at
	n := b.u32()
	if int64(n) >= int64(len(b.frames)) {
		b.fail(at, "a branch to block %d of %d", n, len(b.frames))
		return
	}
	f := b.frames[len(b.frames)-1-int(n)]
	if f.loop {
		b.charge(f.params)
	} else {
		b.charge(f.results)
	}
}

// run reads instructions to the end of the outermost block.
func (b *body) run(results int) {
	b.frames = append(b.frames[:0], frame{results: results})
	for len(b.frames) > 0 && b.err == nil {
		b.instruction()
	}
}

func (b *body) instruction() {
	at := b.at
	code := b.byte()
	o := plainOps[code]
	if b.constant && !constantOp(code) && b.err == nil {
		b.fail(at, "opcode 0x%02x in a constant", code)
		return
	}
	switch o.immediate {
	case unknown:
		b.noOp(at, code)
	case control:
		b.control(at, code)
	default:
		b.do(o)
	}
}

// noOp says why a code is no instruction.
func (b *body) noOp(at int, code byte) {
	switch code {
	case 0x12, 0x13, 0x15:
		b.refuse(at, "tail calls (opcode 0x%02x) are not supported", code)
	case prefixAtomic:
		b.refuse(at, "atomics (opcode 0x%02x) are not supported", code)
	default:
		b.refuse(at, "opcode 0x%02x is unknown or not supported", code)
	}
}

// do reads what follows the code of an instruction.
func (b *body) do(o op) {
	switch o.immediate {
	case index:
		b.u32()
	case indices:
		b.u32()
		b.u32()
	case access:
		b.access()
	case laneOf:
		b.access()
		b.byte()
	case bytes1:
		b.byte()
	case bytes4:
		b.skip(4)
	case bytes8:
		b.skip(8)
	case bytes16:
		b.skip(16)
	case signed32:
		b.signed(32)
	case signed64:
		b.signed(64)
	case reference:
		b.heapType()
	case values:
		for n := b.count("types of a select", 1); n > 0; n-- {
			b.valueType()
		}
	}
	if o.calls {
		b.chargeCall()
	}
	if o.bulk {
		b.bulk++
	}
	b.pop(int(o.pop))
	b.push(int(o.push))
}

// access reads the alignment and the offset of an access to memory. Bit 6 says that the number of the memory is there.
func (b *body) access() {
	if b.u32()&0x40 != 0 {
		b.u32()
	}
	b.u32()
}

// second reads the second code of an instruction, and the rest of it unless it is control.
func (b *body) second(at int, prefix byte, ops []op) uint32 {
	code := b.u32()
	switch {
	case b.err != nil:
	case int64(code) >= int64(len(ops)) || ops[code].immediate == unknown:
		b.refuse(at, "opcode 0x%02x 0x%02x is unknown or not supported", prefix, code)
	case b.constant && !constantSecond(prefix, code):
		b.fail(at, "opcode 0x%02x 0x%02x in a constant", prefix, code)
	case ops[code].immediate != control:
		b.do(ops[code])
	default:
		b.gc(code)
	}
	return code
}

// gc reads instructions whose number of values depends on what they name.
func (b *body) gc(code uint32) {
	at := b.at
	switch code {
	case 0x00: // struct.new
		t := b.typeOf(at, b.u32(), structure)
		b.chargeCall()
		b.pop(int(t.params))
		b.push(1)
	case 0x08: // array.new_fixed
		b.u32()
		at = b.at
		n := b.u32()
		b.chargeCall()
		if b.atMost(at, "values of array.new_fixed", int64(n), MaxFixedArray) {
			b.pop(int(n))
		}
		b.push(1)
	default: // br_on_cast, br_on_cast_fail
		b.flag("flags of a cast", 3)
		b.label()
		b.heapType()
		b.heapType()
	}
}

// constantOp is true for what a constant may be made of, or a prefix of it.
func constantOp(code byte) bool {
	switch code {
	case 0x0b, 0x23, 0x41, 0x42, 0x43, 0x44, 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e, 0xd0, 0xd2, prefixGC, prefixVector:
		return true
	}
	return false
}

func constantSecond(prefix byte, code uint32) bool {
	if prefix == prefixVector {
		return code == 0x0c
	}
	return code <= 0x01 || code >= 0x06 && code <= 0x08 || code >= 0x1a && code <= 0x1c
}
