// node/util_args.js is util.parseArgs.

"use strict";

const { ArrayIsArray, Object, ObjectPrototypeHasOwnProperty, TypeError } = primordials;
const { node } = internal;
const { checks, coded } = node;

function wrong(code, message) { return coded(TypeError, code, message); }

// tokensOf reads the words of a command line.
function tokensOf(args, options) {
  const tokens = [];
  const byShort = {};
  for (const name of Object.keys(options)) if (options[name].short) byShort[options[name].short] = name;
  let index = -1;
  const rest = [...args];
  const push = (name, rawName, value, inline) => tokens.push({ kind: "option", name, rawName, index, value, inlineValue: inline });
  while (rest.length > 0) {
    const word = rest.shift();
    index++;
    if (word === "--") {
      tokens.push({ kind: "option-terminator", index });
      for (const value of rest) tokens.push({ kind: "positional", index: ++index, value });
      break;
    }
    const wants = (name) => options[name]?.type === "string";
    if (/^-[^-]$/.test(word)) {
      const name = byShort[word[1]] ?? word[1];
      if (wants(name) && rest.length > 0 && rest[0] !== undefined && !(rest[0].length > 1 && rest[0][0] === "-")) {
        push(name, word, rest.shift(), false);
        index++;
      } else push(name, word, undefined, undefined);
    } else if (/^-[^-]./.test(word)) {
      const name = byShort[word[1]] ?? word[1];
      if (wants(name)) push(name, `-${word[1]}`, word.slice(2), true);
      else {
        push(name, `-${word[1]}`, undefined, undefined);
        index--;
        rest.unshift(`-${word.slice(2)}`);
      }
    } else if (/^--[^=]+=/.test(word)) {
      const at = word.indexOf("=");
      push(word.slice(2, at), word.slice(0, at), word.slice(at + 1), true);
    } else if (/^--./.test(word)) {
      const name = word.slice(2);
      if (wants(name) && rest.length > 0 && !(rest[0].length > 1 && rest[0][0] === "-")) {
        push(name, word, rest.shift(), false);
        index++;
      } else push(name, word, undefined, undefined);
    } else tokens.push({ kind: "positional", index, value: word });
  }
  return tokens;
}

function store(values, name, value, option, allowNegative) {
  if (allowNegative && name.startsWith("no-") && option === undefined) {
    name = name.slice(3);
    value = false;
  }
  if (name === "__proto__") return;
  const given = value ?? true;
  if (option?.multiple) {
    if (values[name]) values[name].push(given);
    else values[name] = [given];
  } else values[name] = given;
}

function checkOption(token, option) {
  const shown = option?.short ? `-${option.short}, --${token.name}` : `--${token.name}`;
  if (option === undefined) throw wrong("ERR_PARSE_ARGS_UNKNOWN_OPTION", `Unknown option '${token.rawName}'`);
  if (option.type === "string" && typeof token.value !== "string") {
    throw wrong("ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${shown} <value>' argument missing`);
  }
  if (option.type === "boolean" && token.value !== undefined) {
    throw wrong("ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${shown}' does not take an argument`);
  }
}

node.parseArgs = (config = {}) => {
  const { args = [], strict = true, tokens: wanted = false, options = {}, allowNegative = false } = config;
  const allowPositionals = config.allowPositionals ?? !strict;
  if (!ArrayIsArray(args)) throw node.wrongType("args", "an instance of Array", args);
  checks.object(options, "options");
  for (const name of Object.keys(options)) {
    checks.oneOf(options[name].type, `options.${name}.type`, ["string", "boolean"]);
    const { short } = options[name];
    if (short !== undefined && (typeof short !== "string" || short.length !== 1)) {
      throw node.wrongValue(`options.${name}.short`, short, "must be a single character");
    }
  }
  const values = { __proto__: null };
  const positionals = [];
  const tokens = tokensOf(args, options);
  for (const token of tokens) {
    if (token.kind === "option") {
      const option = ObjectPrototypeHasOwnProperty(options, token.name) ? options[token.name] : undefined;
      const negative = allowNegative && option === undefined && token.name.startsWith("no-") && options[token.name.slice(3)]?.type === "boolean";
      if (strict && !negative) checkOption(token, option);
      store(values, token.name, token.value, option, negative);
    } else if (token.kind === "positional") {
      if (!allowPositionals) throw wrong("ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL", `Unexpected argument '${token.value}'. This command does not take positional arguments`);
      positionals.push(token.value);
    }
  }
  for (const name of Object.keys(options)) {
    if (options[name].default !== undefined && values[name] === undefined) values[name] = options[name].default;
  }
  const out = { values, positionals };
  if (wanted) out.tokens = tokens;
  return out;
};
