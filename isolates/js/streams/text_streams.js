// streams/text_streams.js is TextDecoderStream and TextEncoderStream of the Encoding standard.

"use strict";

const {
  ReflectConstruct, StringPrototypeCharCodeAt, StringPrototypeSlice, TypeError, Uint8Array, lengthOf,
} = primordials;
const {
  decodeWith, defineInterface, illegalInvocation, isBufferSource, isObject, liveBytes, streams, toDOMString,
} = internal;
const { TextDecoder } = primordials.globalThis;
const { encode } = host;

function attribute(name) {
  return primordials.uncurryThis(primordials.ReflectGetOwnPropertyDescriptor(TextDecoder.prototype, name).get);
}
const encodingOf = attribute("encoding");
const fatalOf = attribute("fatal");
const ignoreBOMOf = attribute("ignoreBOM");

let partsOf;

class TextDecoderStream {
  #decoder;
  #transform;
  constructor(label = "utf-8", options = undefined) {
    const decoder = ReflectConstruct(TextDecoder, [label, options]);
    this.#decoder = decoder;
    const give = (text) => { if (text !== "") streams.transformEnqueue(this.#transform, text); };
    this.#transform = streams.newTransform((chunk) => {
      if (!isBufferSource(chunk)) throw new TypeError("TextDecoderStream: a chunk is neither an ArrayBuffer nor a view of one");
      give(decodeWith(decoder, liveBytes(chunk), true));
    }, () => { give(decodeWith(decoder, new Uint8Array(0), false)); }, () => {});
  }
  static {
    partsOf = (value) => {
      if (!isObject(value) || !(#decoder in value)) throw illegalInvocation("TextDecoderStream");
      return { __proto__: null, decoder: value.#decoder, transform: value.#transform };
    };
  }
  get encoding() { return encodingOf(partsOf(this).decoder); }
  get fatal() { return fatalOf(partsOf(this).decoder); }
  get ignoreBOM() { return ignoreBOMOf(partsOf(this).decoder); }
  get readable() { return streams.transformReadable(partsOf(this).transform); }
  get writable() { return streams.transformWritable(partsOf(this).transform); }
}
defineInterface(TextDecoderStream, "TextDecoderStream");

let transformOf;

class TextEncoderStream {
  #lead = ""; // a lead surrogate whose second half can still arrive
  #transform;
  constructor() {
    const give = (text) => {
      if (text !== "") {
        const bytes = encode(text);
        if (lengthOf(bytes) > 0) streams.transformEnqueue(this.#transform, bytes);
      }
    };
    this.#transform = streams.newTransform((chunk) => {
      let text = this.#lead + toDOMString(chunk);
      this.#lead = "";
      const last = text.length === 0 ? 0 : StringPrototypeCharCodeAt(text, text.length - 1);
      if (last >= 0xd800 && last <= 0xdbff) {
        this.#lead = StringPrototypeSlice(text, -1);
        text = StringPrototypeSlice(text, 0, -1);
      }
      give(text);
    }, () => { give(this.#lead); }, () => {});
  }
  static {
    transformOf = (value) => {
      if (!isObject(value) || !(#transform in value)) throw illegalInvocation("TextEncoderStream");
      return value.#transform;
    };
  }
  get encoding() {
    transformOf(this);
    return "utf-8";
  }
  get readable() { return streams.transformReadable(transformOf(this)); }
  get writable() { return streams.transformWritable(transformOf(this)); }
}
defineInterface(TextEncoderStream, "TextEncoderStream");
