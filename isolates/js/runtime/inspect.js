// runtime/inspect.js writes any value as text, as Node's util.inspect does for common values. It runs no getter, no
// toString, no inspect hook and (with host.proxyDetails) no proxy trap. It stops at a limit of characters.

"use strict";

const {
  ArrayPrototypeIndexOf, List, Map, MathFloor, MathMax, MathMin, MapPrototypeGet, MapPrototypeGetSize, MapPrototypeHas, MapPrototypeSet,
  NumberPrototypeToString, ObjectIs, ObjectPrototypeHasOwnProperty, ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf, ReflectOwnKeys, StringPrototypeCharCodeAt, StringPrototypeIncludes, StringPrototypePadEnd, StringPrototypePadStart,
  StringPrototypeRepeat,
  StringPrototypeSlice, StringPrototypeStartsWith, SymbolPrototypeToString, sealedProto, split,
} = primordials;
const { proxyDetails } = internal;
const promiseDetails = typeof host.promiseDetails === "function" ? host.promiseDetails : undefined;

const BUDGET = 10000;
const MAX_CUSTOM = 1_000_000; // characters
const MAX_ITEMS = 100;
const MAX_KEYS = 100_000;
const MAX_STRING = 4096;
const WIDTH = 76;
const MAX_LINE_ITEMS = 6; // a longer list is written in columns
const MAX_COLUMNS = 12;
const MAX_CELL = 24; // characters; a list with longer items has one item per line

class Context {
  depth;
  left = BUDGET;
  seen = new List();
  circular = null;
  custom = null; // a function that writes some objects in its own way, for util.inspect
  constructor(depth) {
    this.depth = depth;
  }
}
sealedProto(Context);

// attempt returns the result of fn, or undefined when fn throws. The callers use it for the brand checks of built-in
// prototypes.
function attempt(fn, value) {
  try {
    return fn(value);
  } catch {
    return undefined;
  }
}

function quote(text) {
  const clipped = text.length > MAX_STRING;
  if (clipped) text = StringPrototypeSlice(text, 0, MAX_STRING);
  const mark = !StringPrototypeIncludes(text, "'") ? "'" : !StringPrototypeIncludes(text, '"') ? '"'
    : !StringPrototypeIncludes(text, "`") ? "`" : "'";
  let out = mark;
  for (let i = 0; i < text.length; i++) out += escaped(text, i, mark);
  return out + mark + (clipped ? "…" : "");
}

function escaped(text, i, mark) {
  const c = text[i];
  if (c === "\n") return "\\n";
  if (c === "\r") return "\\r";
  if (c === "\t") return "\\t";
  if (c === "\\") return "\\\\";
  if (c === mark) return "\\" + c;
  const code = StringPrototypeCharCodeAt(c, 0);
  if (code < 32 || code === 127) return "\\x" + (code < 16 ? "0" : "") + NumberPrototypeToString(code, 16);
  return c;
}

function isIdentifier(key) {
  if (key.length === 0) return false;
  for (let i = 0; i < key.length; i++) {
    const c = StringPrototypeCharCodeAt(key, i);
    const letter = (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 95;
    if (!letter && !(i > 0 && c >= 48 && c <= 57)) return false;
  }
  return true;
}

function primitive(value) {
  switch (typeof value) {
    case "string": return quote(value);
    case "number": return ObjectIs(value, -0) ? "-0" : `${value}`;
    case "bigint": return value > 10n ** 60n || value < -(10n ** 60n) ? "[BigInt]" : `${value}n`;
    case "symbol": return SymbolPrototypeToString(value);
    default: return `${value}`;
  }
}

// className returns the name of the nearest constructor, "" if there is none, and null for a null prototype.
function className(value) {
  let object = value;
  for (let i = 0; i < 16 && object !== null; i++) {
    if (proxyDetails(object) !== undefined) return "";
    const descriptor = ReflectGetOwnPropertyDescriptor(object, "constructor");
    if (descriptor !== undefined && typeof ownValue(descriptor) === "function") {
      const name = functionName(ownValue(descriptor));
      if (name !== "") return name;
    }
    object = ReflectGetPrototypeOf(object);
    if (i === 0 && object === null) return null;
  }
  return "";
}

function ownValue(descriptor) {
  return ObjectPrototypeHasOwnProperty(descriptor, "value") ? descriptor.value : undefined;
}

function functionName(fn) {
  const descriptor = proxyDetails(fn) === undefined ? ReflectGetOwnPropertyDescriptor(fn, "name") : undefined;
  const name = descriptor === undefined ? "" : ownValue(descriptor);
  return typeof name === "string" ? StringPrototypeSlice(name, 0, 128) : "";
}

function format(ctx, value, level) {
  if ((typeof value !== "object" || value === null) && typeof value !== "function") {
    const text = primitive(value);
    ctx.left -= text.length;
    return text;
  }
  for (let i = 0; i < 16; i++) {
    const details = proxyDetails(value);
    if (details === undefined) break;
    if (details[0] === null || details[0] === undefined) return "<Revoked Proxy>";
    value = details[0];
  }
  if (ArrayPrototypeIndexOf(ctx.seen, value) !== -1) {
    ctx.circular ??= new Map();
    if (!MapPrototypeHas(ctx.circular, value)) MapPrototypeSet(ctx.circular, value, MapPrototypeGetSize(ctx.circular) + 1);
    return `[Circular *${MapPrototypeGet(ctx.circular, value)}]`;
  }
  if (ctx.left <= 0) return "…";
  let text;
  try {
    text = formatObject(ctx, value, level);
  } catch (error) {
    if (ctx.custom !== null) throw error;
    text = "[Object]";
  }
  if (ctx.circular !== null && MapPrototypeHas(ctx.circular, value)) {
    text = `<ref *${MapPrototypeGet(ctx.circular, value)}> ${text}`;
  }
  return text;
}

class Shape {
  prefix = "";
  open = "{";
  close = "}";
  items = new List();
  skipIndices = false;
  wide = false; // so many indices that a list of the keys would take seconds and gigabytes: other keys are not shown
  leaf = "";
  name = "";
  kind = "";
  size = 0; // 0 = the object has no contents except keys
  data = null;
  extra = "";
}
sealedProto(Shape);

function formatObject(ctx, value, level) {
  const own = ctx.custom === null ? undefined : ctx.custom(value, ctx.depth - level);
  if (own !== undefined) {
    ctx.left -= own.length;
    return indented(own, level);
  }
  const shape = describeShape(ctx, value);
  const keyed = shape.extra !== "" || (!shape.wide && hasOwnKeys(value, shape));
  if (shape.leaf !== "" && !keyed) {
    ctx.left -= shape.leaf.length;
    return indented(shape.leaf, level);
  }
  if (level > ctx.depth && (keyed || shape.size > 0)) return `[${shape.name || "Object"}]`;
  ctx.seen[ctx.seen.length] = value;
  fill(ctx, value, shape, level);
  ctx.seen.length--;
  return layout(ctx, shape, level);
}

// indented indents the lines after the first to the level of the surrounding value.
function indented(text, level) {
  if (level === 0 || !StringPrototypeIncludes(text, "\n")) return text;
  const lines = split(text, "\n");
  return join(lines, `\n${StringPrototypeRepeat("  ", level)}`);
}

// isShown reports whether a key is listed. It is false for the indices of a list and for the keys that an error's
// text already shows.
function isShown(key, shape) {
  if (shape.skipIndices && isIndex(key)) return false;
  return shape.kind !== "error" || (key !== "stack" && key !== "message" && key !== "name");
}

function isIndex(key) {
  if (typeof key !== "string" || key.length === 0 || key.length > 10) return false;
  for (let i = 0; i < key.length; i++) {
    if (key[i] < "0" || key[i] > "9") return false;
  }
  return true;
}

function hasOwnKeys(value, shape) {
  const keys = ReflectOwnKeys(value);
  for (let i = 0; i < keys.length; i++) {
    if (!isShown(keys[i], shape)) continue;
    const descriptor = ReflectGetOwnPropertyDescriptor(value, keys[i]);
    if (descriptor !== undefined && descriptor.enumerable) return true;
  }
  return false;
}

// layout writes the items on one line when they are short, and otherwise one per line. It puts the elements of a long
// list into columns.
function layout(ctx, shape, level) {
  const { items } = shape;
  const head = shape.prefix === "" ? shape.open : `${indented(shape.prefix, level)} ${shape.open}`;
  if (items.length === 0) return `${head}${shape.close}`;
  let total = head.length + items.length;
  let longest = 0;
  let oneLine = !StringPrototypeIncludes(head, "\n");
  for (let i = 0; i < items.length; i++) {
    total += items[i].length + 1;
    if (items[i].length > longest) longest = items[i].length;
    if (StringPrototypeIncludes(items[i], "\n")) oneLine = false;
  }
  const isList = shape.open === "[" && items.length > MAX_LINE_ITEMS;
  if (oneLine && total <= WIDTH && !isList) return `${head} ${join(items, ", ")} ${shape.close}`;
  const pad = StringPrototypeRepeat("  ", level + 1);
  const end = `\n${StringPrototypeRepeat("  ", level)}${shape.close}`;
  if (isList && oneLine && longest <= MAX_CELL) return head + rows(items, shape.size, pad) + end;
  return `${head}\n${pad}${join(items, `,\n${pad}`)}${end}`;
}

// rows puts the elements of a list into columns of equal width. It aligns numbers to the right.
function rows(items, elements, pad) {
  let width = 0;
  let count = 0;
  let numbers = true;
  while (count < items.length && count < elements && !StringPrototypeStartsWith(items[count], "... ")) {
    const text = items[count++];
    if (text.length > width) width = text.length;
    const c = text[text.length - 1];
    if ((c < "0" || c > "9") && c !== "n" && c !== "N") numbers = false;
  }
  const columns = MathMax(1, MathMin(MAX_COLUMNS, MathFloor(WIDTH / (width + 2))));
  let out = "";
  for (let i = 0; i < items.length; i++) {
    const text = items[i] + (i + 1 < items.length ? "," : "");
    const first = i >= count || i % columns === 0;
    const last = i >= count - 1 || i % columns === columns - 1;
    out += first ? `\n${pad}` : " ";
    if (i >= count) out += text;
    else if (numbers) out += StringPrototypePadStart(text, width + (i + 1 < items.length ? 1 : 0));
    else out += last ? text : StringPrototypePadEnd(text, width + 1);
  }
  return out;
}

function join(items, separator) {
  let out = "";
  for (let i = 0; i < items.length; i++) out += i === 0 ? items[i] : separator + items[i];
  return out;
}

internal.inspectParts = {
  __proto__: null,
  Shape, attempt, className, format, functionName, isIdentifier, isShown, ownValue, quote, primitive, MAX_ITEMS, MAX_KEYS, promiseDetails,
};

let describeShape;
let fill;
internal.setInspectShape = (shapes, filler) => {
  describeShape = shapes;
  fill = filler;
};

// inspect writes a value. It shows nested objects to a depth of 2 by default.
internal.inspect = (value, depth = 2) => format(new Context(depth), value, 0);

// inspectWith is inspect with a function that gets each object and the depth that is left. It returns a text, or
// undefined. It may throw, since the code of the worker asks for it.
internal.inspectWith = (value, depth, custom) => {
  const context = new Context(depth);
  context.left = MAX_CUSTOM;
  context.custom = custom;
  return format(context, value, 0);
};

// inspectBrief is for one-line messages, for example about a thrown object or a wrong return value of a handler.
internal.inspectBrief = (value) => {
  const context = new Context(0);
  context.left = 500;
  const text = format(context, value, 0);
  return text.length > 500 ? StringPrototypeSlice(text, 0, 500) + "…" : text;
};
