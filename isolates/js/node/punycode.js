// node/punycode.js is node:punycode (RFC 3492).

"use strict";

const { MathFloor, RangeError, StringFromCodePoint, StringPrototypeCharCodeAt, StringPrototypeCodePointAt, StringPrototypeIndexOf, StringPrototypeLastIndexOf, StringPrototypeSlice, StringPrototypeStartsWith, StringPrototypeToLowerCase } = primordials;
const { put } = internal.node;

const MOST = 2147483647;

function adapt(delta, points, first) {
  delta = first ? MathFloor(delta / 700) : delta >> 1;
  delta += MathFloor(delta / points);
  let k = 0;
  for (; delta > 455; k += 36) delta = MathFloor(delta / 35);
  return MathFloor(k + (36 * delta) / (delta + 38));
}

const threshold = (k, bias) => (k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias);
const overflow = () => new RangeError("Overflow: input needs wider integers to process");

function decodePoints(text) {
  const at = StringPrototypeLastIndexOf(text, "-");
  const out = [];
  for (let i = 0; i < at; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c >= 128) throw new RangeError("Illegal input >= 0x80 (not a basic code point)");
    out[out.length] = c;
  }
  let n = 128;
  let i = 0;
  let bias = 72;
  for (let index = at > 0 ? at + 1 : 0; index < text.length;) {
    const before = i;
    for (let w = 1, k = 36; ; k += 36) {
      if (index >= text.length) throw new RangeError("Invalid input");
      const c = StringPrototypeCharCodeAt(text, index++);
      const digit = c >= 48 && c < 58 ? c - 22 : c >= 65 && c < 91 ? c - 65 : c >= 97 && c < 123 ? c - 97 : 36;
      if (digit >= 36) throw new RangeError("Invalid input");
      if (digit > MathFloor((MOST - i) / w)) throw overflow();
      i += digit * w;
      const t = threshold(k, bias);
      if (digit < t) break;
      w *= 36 - t;
    }
    const size = out.length + 1;
    bias = adapt(i - before, size, before === 0);
    n += MathFloor(i / size);
    i %= size;
    primordials.ArrayPrototypeSplice(out, i++, 0, n);
  }
  return out;
}

function pointsOf(text) {
  const out = [];
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCodePointAt(text, i);
    if (c > 0xffff) i++;
    out[out.length] = c;
  }
  return out;
}

function textOf(points) {
  let out = "";
  for (let i = 0; i < points.length; i++) out += StringFromCodePoint(points[i]);
  return out;
}

const digitOf = (d) => StringFromCodePoint(d < 26 ? d + 97 : d + 22);

function encode(text) {
  const points = pointsOf(text);
  let out = "";
  for (let i = 0; i < points.length; i++) if (points[i] < 128) out += StringFromCodePoint(points[i]);
  const basic = out.length;
  let done = basic;
  if (basic > 0) out += "-";
  for (let n = 128, delta = 0, bias = 72; done < points.length; delta++, n++) {
    let next = MOST;
    for (let i = 0; i < points.length; i++) if (points[i] >= n && points[i] < next) next = points[i];
    if (next - n > MathFloor((MOST - delta) / (done + 1))) throw overflow();
    delta += (next - n) * (done + 1);
    n = next;
    for (let i = 0; i < points.length; i++) {
      if (points[i] < n) delta++;
      if (points[i] !== n) continue;
      let q = delta;
      for (let k = 36; ; k += 36) {
        const t = threshold(k, bias);
        if (q < t) break;
        out += digitOf(t + ((q - t) % (36 - t)));
        q = MathFloor((q - t) / (36 - t));
      }
      out += digitOf(q);
      bias = adapt(delta, done + 1, done === basic);
      delta = 0;
      done++;
    }
  }
  return out;
}

// labels maps the labels of a domain, or of what follows the @ of an address.
function labels(text, map) {
  const at = StringPrototypeIndexOf(text, "@");
  let out = at === -1 ? "" : StringPrototypeSlice(text, 0, at + 1);
  let label = "";
  for (let i = at + 1; i <= text.length; i++) {
    const c = i < text.length ? text[i] : "";
    if (c === "." || c === "\u3002" || c === "\uff0e" || c === "\uff61" || c === "") {
      out += map(label) + (c === "" ? "" : ".");
      label = "";
    } else label += c;
  }
  return out;
}

const isAscii = (text) => {
  for (let i = 0; i < text.length; i++) if (StringPrototypeCharCodeAt(text, i) > 127) return false;
  return true;
};

internal.nodeModules.punycode = put({}, {
  version: "2.1.0", encode,
  ucs2: put({}, { decode: pointsOf, encode: textOf }),
  decode(text) { return textOf(decodePoints(text)); },
  toASCII(text) { return labels(text, (label) => (isAscii(label) ? label : `xn--${encode(label)}`)); },
  toUnicode(text) {
    return labels(text, (label) => (StringPrototypeStartsWith(label, "xn--")
      ? textOf(decodePoints(StringPrototypeToLowerCase(StringPrototypeSlice(label, 4)))) : label));
  },
});
