// node/util_inspect.js is util.inspect and util.format, over the inspect of the console.

"use strict";

const {
  JSONStringify, MathTrunc, NumberIsNaN, NumberParseFloat, NumberParseInt, ReflectApply, StringPrototypeCharCodeAt,
  StringPrototypeIndexOf, StringPrototypeSlice, SymbolFor, SymbolPrototypeToString,
} = primordials;
const { node } = internal;
const { checks, put } = node;

const kCustom = SymbolFor("nodejs.util.inspect.custom");

const defaults = put({}, {
  showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000,
  breakLength: 128, compact: 3, sorted: false, getters: false, numericSeparator: false,
});

// styles and colors are those of Node, by which packages write colors of their own. inspect itself writes none.
const colors = put({}, {
  reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28],
  strikethrough: [9, 29], doubleunderline: [21, 24], black: [30, 39], red: [31, 39], green: [32, 39], yellow: [33, 39], blue: [34, 39],
  magenta: [35, 39], cyan: [36, 39], white: [37, 39], gray: [90, 39], grey: [90, 39], blackBright: [90, 39], redBright: [91, 39],
  greenBright: [92, 39], yellowBright: [93, 39], blueBright: [94, 39], magentaBright: [95, 39], cyanBright: [96, 39], whiteBright: [97, 39],
  bgBlack: [40, 49], bgRed: [41, 49], bgGreen: [42, 49], bgYellow: [43, 49], bgBlue: [44, 49], bgMagenta: [45, 49], bgCyan: [46, 49],
  bgWhite: [47, 49], bgGray: [100, 49], bgGrey: [100, 49], bgBlackBright: [100, 49], bgRedBright: [101, 49], bgGreenBright: [102, 49],
  bgYellowBright: [103, 49], bgBlueBright: [104, 49], bgMagentaBright: [105, 49], bgCyanBright: [106, 49], bgWhiteBright: [107, 49],
  framed: [51, 54], overlined: [53, 55],
});
const styles = put({}, {
  special: "cyan", number: "yellow", bigint: "yellow", boolean: "yellow", undefined: "grey", null: "bold", string: "green",
  symbol: "green", date: "magenta", regexp: "red", module: "underline",
});

function inspect(value, options) {
  const given = { ...defaults };
  if (typeof options === "object" && options !== null) put(given, options);
  else if (options !== undefined) {
    given.showHidden = options;
    if (arguments.length > 2 && arguments[2] !== undefined) given.depth = arguments[2];
  }
  const depth = given.depth === null || given.depth === Infinity ? 1000 : given.depth;
  return internal.inspectWith(value, depth, given.customInspect ? (object, left) => custom(object, left, given) : () => undefined);
}

// custom calls the method by which an object writes itself.
function custom(object, left, options) {
  const method = object[kCustom];
  if (typeof method !== "function" || method === inspect || object.constructor?.prototype === object) return undefined;
  const result = ReflectApply(method, object, [left, { ...options, depth: left, stylize: (text) => `${text}` }, inspect]);
  if (result === object) return undefined;
  return typeof result === "string" ? result : inspect(result, { ...options, depth: left });
}
put(inspect, { custom: kCustom, colors, styles });
primordials.ObjectDefineProperty(inspect, "defaultOptions", {
  __proto__: null,
  get: () => defaults,
  set: (options) => {
    checks.object(options, "options");
    put(defaults, options);
  },
  enumerable: true,
  configurable: true,
});

function numberText(value, read) {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "symbol") return "NaN";
  if (typeof value === "object" && value !== null) return "NaN";
  const n = read(value);
  return primordials.ObjectIs(n, -0) ? "-0" : `${n}`;
}

function stringText(value, options) {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number") return primordials.ObjectIs(value, -0) ? "-0" : `${value}`;
  if (typeof value === "symbol") return SymbolPrototypeToString(value);
  if (typeof value === "object" && value !== null) {
    const own = value.toString;
    const builtIn = own === primordials.ObjectPrototype.toString || own === primordials.Error.prototype.toString ||
      own === primordials.ArrayPrototype.toString || own === primordials.DatePrototype.toString;
    if (typeof own === "function" && !builtIn && !internal.isError(value)) return `${value}`;
    if (internal.isError(value)) return `${value.stack ?? value}`;
    return inspect(value, { ...options, depth: 0, colors: false, compact: 3 });
  }
  return `${value}`;
}

function jsonText(value) {
  try {
    return JSONStringify(value);
  } catch (error) {
    if (error?.name === "TypeError" && StringPrototypeIndexOf(error.message, "circular") !== -1) return "[Circular]";
    throw error;
  }
}

function converted(kind, value, options) {
  switch (kind) {
    case 115: return stringText(value, options);
    case 106: return jsonText(value);
    case 100: return numberText(value, (v) => +v);
    case 105: return numberText(value, (v) => { const n = NumberParseInt(v, 10); return NumberIsNaN(n) ? n : MathTrunc(n); });
    case 102: return typeof value === "symbol" ? "NaN" : `${NumberParseFloat(value)}`;
    case 79: return inspect(value, options);
    case 111: return inspect(value, { ...options, showHidden: true, showProxy: true, depth: 4 });
    default: return "";
  }
}

function formatWith(options, args) {
  let out = "";
  let next = 0;
  if (args.length > 0 && typeof args[0] === "string") {
    const text = args[0];
    if (args.length === 1) return text;
    next = 1;
    let plain = 0;
    for (let i = 0; i < text.length - 1; i++) {
      if (StringPrototypeCharCodeAt(text, i) !== 37) continue;
      const kind = StringPrototypeCharCodeAt(text, i + 1);
      if (kind === 37) {
        out += StringPrototypeSlice(text, plain, i) + "%";
        plain = i + 2;
        i++;
        continue;
      }
      const known = kind === 115 || kind === 106 || kind === 100 || kind === 105 || kind === 102 || kind === 79 || kind === 111 || kind === 99;
      if (!known || next >= args.length) continue;
      out += StringPrototypeSlice(text, plain, i) + converted(kind, args[next++], options);
      plain = i + 2;
      i++;
    }
    out += StringPrototypeSlice(text, plain);
  }
  for (let i = next; i < args.length; i++) {
    if (i > 0) out += " ";
    out += typeof args[i] === "string" ? args[i] : inspect(args[i], options);
  }
  return out;
}

const functions = {
  format(...args) { return formatWith(undefined, args); },
  formatWithOptions(options, ...args) {
    checks.object(options, "inspectOptions");
    return formatWith(options, args);
  },
};
node.inspecting = { __proto__: null, colors, functions, inspect, kCustom };
