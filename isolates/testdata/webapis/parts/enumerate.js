// enumerate lists what the global object has beside ECMAScript, with the members of each: TestWebAPIs writes docs/reference/web-apis.md from it.

const { getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;

function member(key, d) {
  const name = typeof key === "symbol" ? `[${key.description}]` : key;
  if (d.get !== undefined) return { name, kind: d.set === undefined ? "readonly attribute" : "attribute" };
  if (typeof d.value === "function") return { name, kind: /^class /.test(Function.prototype.toString.call(d.value)) ? "class" : "method" };
  return { name, kind: d.writable ? "attribute" : "constant" };
}

function members(object, skip = []) {
  return ownKeys(object).filter((key) => !skip.includes(key) && key !== Symbol.toStringTag)
    .map((key) => member(key, getOwnPropertyDescriptor(object, key)));
}

function constructs(value) {
  try {
    new value();
    return true;
  } catch (error) {
    return error.message !== "Illegal constructor";
  }
}

function describe(name) {
  const d = getOwnPropertyDescriptor(globalThis, name);
  const value = d.get === undefined ? d.value : globalThis[name];
  if (value === null || (d.get !== undefined && value !== globalThis && value[Symbol.toStringTag] === undefined)) return { name, kind: "attribute" };
  if (typeof value === "function" && value.prototype === undefined) return { name, kind: "function", length: value.length };
  if (typeof value === "function") {
    const parent = getPrototypeOf(value);
    return { name, kind: "interface", parent: parent === Function.prototype ? "" : parent.name, constructs: constructs(value),
      members: members(value.prototype, ["constructor"]), statics: members(value, ["length", "name", "prototype"]) };
  }
  const Class = value === globalThis ? "" : value[Symbol.toStringTag];
  if (value === globalThis || Object.hasOwn(globalThis, Class) && Class !== name) return { name, kind: "object", of: Class };
  return { name, kind: "namespace", members: members(value) };
}

export default { task(event) {
  const ours = ownKeys(globalThis).filter((name) => typeof name === "string" && !event.payload.includes(name));
  return ours.sort((a, b) => (a < b ? -1 : 1)).map(describe);
} };
