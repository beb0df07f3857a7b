// fetch/event_stream.js reads the text/event-stream format of HTML. It takes bytes and returns messages.

"use strict";

const { List, StringPrototypeCharCodeAt, StringPrototypeIncludes, StringPrototypeIndexOf, StringPrototypeSlice, sealedProto, subarray } = primordials;
const { concatBytes, copyBytes } = internal;
const { lengthOf } = primordials;
const { decode } = host;

const MAX_RETRY = 2 ** 31 - 1;

class EventStreamReader {
  lastId = ""; // the id of the latest message
  onMessage; // (type, data)
  onRetry; // (milliseconds)
  #parts = new List(); // the parts of a line that has no end yet
  #first = true; // no line was read yet, so a byte order mark can come
  #skipLF = false;
  #type = "";
  #data = "";
  #id;
  constructor(lastId, onMessage, onRetry) {
    this.lastId = this.#id = lastId;
    this.onMessage = onMessage;
    this.onRetry = onRetry;
  }
  push(bytes) {
    const length = lengthOf(bytes);
    let start = 0;
    for (let i = 0; i < length; i++) {
      const b = bytes[i];
      if (this.#skipLF) {
        this.#skipLF = false;
        if (b === 10) {
          start = i + 1;
          continue;
        }
      }
      if (b !== 10 && b !== 13) continue;
      this.#line(this.#take(subarray(bytes, start, i)));
      start = i + 1;
      this.#skipLF = b === 13;
    }
    if (start < length) this.#parts[this.#parts.length] = copyBytes(subarray(bytes, start, length));
  }
  // take returns the text of a line. The end of a line is ASCII, so no character is split.
  #take(end) {
    let bytes = end;
    if (this.#parts.length > 0) {
      this.#parts[this.#parts.length] = end;
      bytes = concatBytes(this.#parts);
      this.#parts = new List();
    }
    const text = decode(bytes, false);
    if (!this.#first) return text;
    this.#first = false;
    return text !== "" && StringPrototypeCharCodeAt(text, 0) === 0xfeff ? StringPrototypeSlice(text, 1) : text;
  }
  #line(text) {
    if (text === "") {
      this.#dispatch();
      return;
    }
    const colon = StringPrototypeIndexOf(text, ":");
    if (colon === 0) return;
    if (colon === -1) this.#field(text, "");
    else this.#field(StringPrototypeSlice(text, 0, colon), StringPrototypeSlice(text, text[colon + 1] === " " ? colon + 2 : colon + 1));
  }
  #field(name, value) {
    if (name === "event") this.#type = value;
    else if (name === "data") this.#data += `${value}\n`;
    else if (name === "id") {
      if (!StringPrototypeIncludes(value, "\0")) this.#id = value;
    } else if (name === "retry" && isDigits(value)) {
      this.onRetry(+value > MAX_RETRY ? MAX_RETRY : +value);
    }
  }
  #dispatch() {
    this.lastId = this.#id;
    const type = this.#type;
    const data = this.#data;
    this.#type = this.#data = "";
    if (data !== "") this.onMessage(type === "" ? "message" : type, StringPrototypeSlice(data, 0, data.length - 1));
  }
}
sealedProto(EventStreamReader);

function isDigits(text) {
  for (let i = 0; i < text.length; i++) {
    if (text[i] < "0" || text[i] > "9") return false;
  }
  return text !== "";
}

internal.EventStreamReader = EventStreamReader;
