// node/path.js is node:path. Paths are those of POSIX; path.win32 has the same functions, of Windows, as far as
// programs use them to read paths.

"use strict";

const { StringPrototypeCharCodeAt, StringPrototypeLastIndexOf, StringPrototypeSlice, StringPrototypeToLowerCase } = primordials;
const { builtin, checks, put } = internal.node;

// rules are how paths are written: what separates names, and how long the root of a path is.
const posixRules = {
  __proto__: null, sep: "/", delimiter: ":",
  isSep: (c) => c === 47,
  rootOf: (path) => (StringPrototypeCharCodeAt(path, 0) === 47 ? 1 : 0),
};

function windowsRoot(path) {
  const { isSep } = windowsRules;
  const at = (i) => StringPrototypeCharCodeAt(path, i);
  if (path.length > 1 && at(1) === 58) return path.length > 2 && isSep(at(2)) ? 3 : 2;
  if (path.length === 0 || !isSep(at(0))) return 0;
  if (path.length < 2 || !isSep(at(1))) return 1;
  let i = 2;
  while (i < path.length && !isSep(at(i))) i++;
  if (i === 2 || i === path.length) return 1;
  while (i < path.length && isSep(at(i))) i++;
  const share = i;
  while (i < path.length && !isSep(at(i))) i++;
  return i === share ? 1 : i < path.length ? i + 1 : i;
}
const windowsRules = {
  __proto__: null, sep: "\\", delimiter: ";",
  isSep: (c) => c === 47 || c === 92,
  rootOf: windowsRoot,
};

// namesOf splits what follows the root, without empty names and without ".".
function namesOf(rules, path, from) {
  const names = [];
  let start = from;
  for (let i = from; i <= path.length; i++) {
    if (i < path.length && !rules.isSep(StringPrototypeCharCodeAt(path, i))) continue;
    if (i > start) {
      const name = StringPrototypeSlice(path, start, i);
      if (name !== ".") names[names.length] = name;
    }
    start = i + 1;
  }
  return names;
}

function folded(rules, names, absolute) {
  const out = [];
  for (let i = 0; i < names.length; i++) {
    if (names[i] !== "..") out[out.length] = names[i];
    else if (out.length > 0 && out[out.length - 1] !== "..") out.length--;
    else if (!absolute) out[out.length] = "..";
  }
  let text = "";
  for (let i = 0; i < out.length; i++) text += (i === 0 ? "" : rules.sep) + out[i];
  return text;
}

function isAbsoluteRoot(rules, path, root) {
  return root > 0 && (rules === posixRules || root !== 2 || StringPrototypeCharCodeAt(path, 1) !== 58);
}

function rootText(rules, path, root) {
  if (rules === posixRules) return root === 0 ? "" : "/";
  let out = "";
  for (let i = 0; i < root; i++) out += rules.isSep(StringPrototypeCharCodeAt(path, i)) ? "\\" : path[i];
  return root > 3 && !rules.isSep(StringPrototypeCharCodeAt(out, out.length - 1)) ? `${out}\\` : out;
}

function trimEnd(rules, path, root) {
  let end = path.length;
  while (end > root && rules.isSep(StringPrototypeCharCodeAt(path, end - 1))) end--;
  return end;
}

function lastSep(rules, path, root, end) {
  for (let i = end - 1; i >= root; i--) if (rules.isSep(StringPrototypeCharCodeAt(path, i))) return i;
  return -1;
}

function extensionAt(base) {
  const at = StringPrototypeLastIndexOf(base, ".");
  return at <= 0 || base === ".." ? -1 : at;
}

function normalize(rules, path) {
  if (path.length === 0) return ".";
  const root = rules.rootOf(path);
  const absolute = isAbsoluteRoot(rules, path, root);
  const trailing = rules.isSep(StringPrototypeCharCodeAt(path, path.length - 1));
  let rest = folded(rules, namesOf(rules, path, root), absolute);
  if (rest === "" && !absolute) rest = ".";
  if (rest !== "" && trailing) rest += rules.sep;
  const head = rootText(rules, path, root);
  return head + rest;
}

function resolve(rules, paths) {
  let names = [];
  let root = "";
  let absolute = false;
  for (let i = paths.length - 1; i >= -1 && !absolute; i--) {
    const path = i >= 0 ? paths[i] : builtin("process").cwd();
    if (i >= 0) checks.string(path, `paths[${i}]`);
    if (path.length === 0) continue;
    const n = rules.rootOf(path);
    const own = rootText(rules, path, n);
    if (rules === windowsRules && root !== "" && own !== "" && own !== "\\" && StringPrototypeToLowerCase(own) !== StringPrototypeToLowerCase(root)) continue;
    names = primordials.ArrayPrototypeConcat(namesOf(rules, path, n), names);
    if (own !== "" && (root === "" || root === "\\")) root = own === "\\" ? root || own : own;
    absolute = isAbsoluteRoot(rules, path, n) && (rules === posixRules || own !== "\\");
  }
  return (root + folded(rules, names, true)) || ".";
}

function relative(rules, from, to) {
  checks.string(from, "from");
  checks.string(to, "to");
  if (from === to) return "";
  from = resolve(rules, [from]);
  to = resolve(rules, [to]);
  if (from === to) return "";
  const fold = rules === windowsRules ? StringPrototypeToLowerCase : (text) => text;
  const a = namesOf(rules, from, rules.rootOf(from));
  const b = namesOf(rules, to, rules.rootOf(to));
  if (fold(rootText(rules, from, rules.rootOf(from))) !== fold(rootText(rules, to, rules.rootOf(to)))) return to;
  let same = 0;
  while (same < a.length && same < b.length && fold(a[same]) === fold(b[same])) same++;
  let out = "";
  for (let i = same; i < a.length; i++) out += (out === "" ? "" : rules.sep) + "..";
  for (let i = same; i < b.length; i++) out += (out === "" ? "" : rules.sep) + b[i];
  return out;
}

function parse(rules, path) {
  checks.string(path, "path");
  const out = { root: "", dir: "", base: "", ext: "", name: "" };
  if (path.length === 0) return out;
  const root = rules.rootOf(path);
  out.root = StringPrototypeSlice(path, 0, root);
  const end = trimEnd(rules, path, root);
  const at = lastSep(rules, path, root, end);
  out.base = StringPrototypeSlice(path, at === -1 ? root : at + 1, end);
  out.dir = at === -1 ? out.root : StringPrototypeSlice(path, 0, at === root - 1 ? root : at);
  const dot = rules === posixRules && path === "/.." ? 1 : extensionAt(out.base); // as Node has it
  out.name = dot === -1 ? out.base : StringPrototypeSlice(out.base, 0, dot);
  out.ext = dot === -1 ? "" : StringPrototypeSlice(out.base, dot);
  return out;
}

function dirname(rules, path) {
  checks.string(path, "path");
  if (path.length === 0) return ".";
  const root = rules.rootOf(path);
  let at = lastSep(rules, path, root, trimEnd(rules, path, root));
  if (at === -1) return root > 0 ? StringPrototypeSlice(path, 0, root) : ".";
  if (rules === posixRules && root === 1 && at === 1) return "//";
  while (at > root && rules.isSep(StringPrototypeCharCodeAt(path, at - 1))) {
    if (rules === posixRules) break; // Node removes one only
    at--;
  }
  return StringPrototypeSlice(path, 0, at);
}

function basename(rules, path, suffix) {
  if (suffix !== undefined) checks.string(suffix, "suffix");
  checks.string(path, "path");
  if (suffix !== undefined && suffix === path) return "";
  const root = rules === windowsRules && path.length > 1 && StringPrototypeCharCodeAt(path, 1) === 58 ? 2 : 0;
  const end = trimEnd(rules, path, root);
  const base = StringPrototypeSlice(path, lastSep(rules, path, root, end) === -1 ? root : lastSep(rules, path, root, end) + 1, end);
  const cut = base.length - (suffix?.length ?? 0);
  return suffix !== undefined && cut > 0 && StringPrototypeSlice(base, cut) === suffix ? StringPrototypeSlice(base, 0, cut) : base;
}

function functionsOf(rules) {
  return {
    resolve(...paths) { return resolve(rules, paths); },
    normalize(path) {
      checks.string(path, "path");
      return normalize(rules, path);
    },
    isAbsolute(path) {
      checks.string(path, "path");
      return isAbsoluteRoot(rules, path, rules.rootOf(path));
    },
    join(...paths) {
      let joined = "";
      for (let i = 0; i < paths.length; i++) {
        checks.string(paths[i], "path");
        if (paths[i].length > 0) joined += (joined === "" ? "" : rules.sep) + paths[i];
      }
      return joined === "" ? "." : normalize(rules, joined);
    },
    relative(from, to) { return relative(rules, from, to); },
    toNamespacedPath(path) { return path; },
    dirname(path) { return dirname(rules, path); },
    basename(path, suffix) { return basename(rules, path, suffix); },
    extname(path) {
      checks.string(path, "path");
      const base = basename(rules, path);
      const at = extensionAt(base);
      return at === -1 ? "" : StringPrototypeSlice(base, at);
    },
    format(object) {
      checks.object(object, "pathObject");
      const dir = object.dir || object.root;
      const ext = object.ext ? `${object.ext[0] === "." ? "" : "."}${object.ext}` : "";
      const base = object.base || `${object.name || ""}${ext}`;
      if (!dir) return base;
      return dir === object.root ? `${dir}${base}` : `${dir}${rules.sep}${base}`;
    },
    parse(path) { return parse(rules, path); },
  };
}

const posix = put({}, functionsOf(posixRules));
const win32 = put({}, functionsOf(windowsRules));
put(posix, { sep: "/", delimiter: ":", win32, posix });
put(win32, { sep: "\\", delimiter: ";", win32, posix });
internal.nodeModules.path = posix;
