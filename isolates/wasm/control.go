package wasm

// control reads an instruction that opens or closes a block, branches, calls, or has two codes.
func (b *body) control(at int, code byte) {
	switch code {
	case 0x00, 0x0a: // unreachable, throw_ref
		b.leave()
	case 0x02, 0x03, 0x04, 0x06, 0x1f: // block, loop, if, try, try_table
		b.begin(code)
	case 0x05, 0x07, 0x19: // else, catch, catch_all
		b.next(at, code)
	case 0x0b: // end
		b.close()
	case 0x18: // delegate
		b.delegate(at)
	case 0x08: // throw
		b.tag()
		b.chargeCall()
		b.leave()
	case 0x10, 0x11, 0x14: // call, call_indirect, call_ref
		b.call(code)
	case prefixGC:
		b.second(at, code, gcOps)
	case prefixMisc:
		b.second(at, code, miscOps)
	case prefixVector:
		b.second(at, code, vectorOps)
	default:
		b.branch(code)
	}
}

func (b *body) branch(code byte) {
	switch code {
	case 0x0c, 0x09: // br, rethrow
		b.label()
		b.leave()
	case 0x0d: // br_if
		b.pop(1)
		b.label()
	case 0x0e: // br_table
		b.pop(1)
		for n := b.count("entries of a br_table", MaxBody) + 1; n > 0 && b.err == nil; n-- {
			b.label()
		}
		b.leave()
	case 0x0f: // return
		b.leave()
	case 0xd5: // br_on_null
		b.label()
	default: // br_on_non_null
		b.label()
		b.pop(1)
	}
}

// begin opens a block, and charges for it.
func (b *body) begin(code byte) {
	params, results := b.blockType()
	if code == 0x04 {
		b.pop(1)
	}
	b.charge(max(params, results))
	if code == 0x1f {
		b.catches()
	}
	b.open(frame{params: params, results: results, loop: code == 0x03, try: code == 0x06})
}

// catches reads which exceptions a try_table catches. Their branches go out of it.
func (b *body) catches() {
	for n := b.count("catches of a try_table", MaxBody); n > 0 && b.err == nil; n-- {
		if kind := b.flag("kind of a catch", 3); kind < 2 {
			b.u32()
		}
		b.label()
	}
}

// next begins the other branch of an if, or a handler of a try.
func (b *body) next(at int, code byte) {
	f := b.top()
	if len(b.frames) == 1 || f.try == (code == 0x05) || f.loop {
		b.fail(at, "opcode 0x%02x where no block takes it", code)
		return
	}
	b.height = f.base
	switch code {
	case 0x05:
		b.push(f.params)
	case 0x07:
		b.push(int(b.tag().params))
	}
	b.charge(f.results)
}

// tag reads the number of a tag and returns its type.
func (b *body) tag() typ {
	at := b.at
	n := b.u32()
	if int64(n) >= int64(len(b.tags)) {
		b.fail(at, "tag %d of %d", n, len(b.tags))
		return typ{}
	}
	return b.types[b.tags[n]]
}

// close ends a block.
func (b *body) close() {
	f := b.top()
	b.height = f.base
	b.push(f.results)
	b.frames = b.frames[:len(b.frames)-1]
}

// delegate ends a try, whose exceptions go to an outer block.
func (b *body) delegate(at int) {
	if !b.top().try {
		b.fail(at, "opcode 0x18 where no block takes it")
		return
	}
	f := *b.top()
	b.close()
	n := b.u32()
	if int64(n) >= int64(len(b.frames)) {
		b.fail(at, "a delegate to block %d of %d", n, len(b.frames))
		return
	}
	b.charge(f.results)
}

// call takes the parameters from the stack and puts the results there.
func (b *body) call(code byte) {
	at := b.at
	n := b.u32()
	if code == 0x10 {
		if int64(n) >= int64(len(b.functions)) {
			b.fail(at, "function %d of %d", n, len(b.functions))
			return
		}
		n = b.functions[n]
	} else {
		if code == 0x11 {
			b.u32()
		}
		b.pop(1)
	}
	t := b.typeOf(at, n, function)
	b.chargeCall()
	b.pop(int(t.params))
	b.push(int(t.results))
}
