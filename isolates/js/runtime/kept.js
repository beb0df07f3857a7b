// runtime/kept.js names bodies that Go keeps: values of bindings, and streams that a binding stores.

"use strict";

const { lengthOf, sealedProto } = primordials;
const { isObject } = internal;

// Kept names a body that Go keeps for a run, until something takes it.
class Kept {
  #kept;
  run;
  id;
  size; // bytes
  constructor(run, id, size) {
    this.run = run;
    this.id = id;
    this.size = size;
  }
  static {
    internal.isKept = (value) => isObject(value) && #kept in value;
  }
}
sealedProto(Kept);
internal.newKept = (run, id, size) => new Kept(run, id, size);
internal.bodySize = (body) => internal.isKept(body) ? body.size : lengthOf(body);
