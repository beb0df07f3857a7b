// streams/pull_into.js holds the entries of byte streams' queues, and functions that split views into parts and make
// views.

"use strict";

const {
  ArrayBufferPrototypeGetByteLength, ArrayBufferPrototypeTransfer, DataView, DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength, DataViewPrototypeGetByteOffset, ReflectConstruct, TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength, TypedArrayPrototypeGetByteOffset, TypedArrayPrototypeGetLength,
  TypedArrayPrototypeGetTag, sealedProto,
} = primordials;

class Segment {
  buffer;
  offset;
  length;
  constructor(buffer, offset, length) {
    this.buffer = buffer;
    this.offset = offset;
    this.length = length;
  }
}
sealedProto(Segment);

// PullInto is a buffer that waits for data. kind is "byob", "default" (auto-allocated) or "none" (its reader was
// released).
class PullInto {
  buffer;
  bufferLength;
  offset;
  length;
  filled = 0;
  minimum;
  elementSize;
  Constructor;
  kind;
  constructor(buffer, offset, length, minimum, elementSize, Constructor, kind) {
    this.buffer = buffer;
    this.bufferLength = ArrayBufferPrototypeGetByteLength(buffer);
    this.offset = offset;
    this.length = length;
    this.minimum = minimum;
    this.elementSize = elementSize;
    this.Constructor = Constructor;
    this.kind = kind;
  }
}
sealedProto(PullInto);

// parts returns the buffer, offset, length, element size and constructor of a view.
function parts(view) {
  const tag = TypedArrayPrototypeGetTag(view);
  if (tag === undefined) {
    return { __proto__: null, buffer: DataViewPrototypeGetBuffer(view), offset: DataViewPrototypeGetByteOffset(view),
      length: DataViewPrototypeGetByteLength(view), size: 1, Constructor: DataView };
  }
  const length = TypedArrayPrototypeGetByteLength(view);
  const count = TypedArrayPrototypeGetLength(view);
  const Constructor = internal.typedArrays[tag] ?? primordials.Float16Array; // V8 adds it late
  return { __proto__: null, buffer: TypedArrayPrototypeGetBuffer(view), offset: TypedArrayPrototypeGetByteOffset(view), length,
    size: count === 0 ? Constructor.BYTES_PER_ELEMENT : length / count, Constructor };
}

internal.typedArrays = { __proto__: null };
const kinds = ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
  "Float32Array", "Float64Array", "BigInt64Array", "BigUint64Array"];
for (let i = 0; i < kinds.length; i++) internal.typedArrays[kinds[i]] = primordials[kinds[i]];

// toView returns the filled part of a descriptor, as the kind of view that its reader passed.
function toView(pull) {
  const buffer = ArrayBufferPrototypeTransfer(pull.buffer);
  return ReflectConstruct(pull.Constructor, [buffer, pull.offset, pull.filled / pull.elementSize]);
}

internal.pullInto = { __proto__: null, PullInto, Segment, parts, toView };
