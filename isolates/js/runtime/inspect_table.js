// runtime/inspect_table.js draws the tables of console.table. Like inspect, it reads properties and runs no code of
// the value.

"use strict";

const {
  ArrayIsArray, ArrayPrototypeIndexOf, List, MapIteratorPrototypeNext, MapPrototypeEntries, MapPrototypeGetSize,
  ReflectGetOwnPropertyDescriptor, ReflectOwnKeys, SetIteratorPrototypeNext, SetPrototypeGetSize, SetPrototypeValues,
  StringPrototypePadEnd, StringPrototypeRepeat, StringPrototypeSlice, StringPrototypeValueOf, SymbolPrototypeToString,
  TypedArrayPrototypeGetTag, lengthOf, sealedProto,
} = primordials;
const { MAX_ITEMS, MAX_KEYS, attempt } = internal.inspectParts;

const MAX_COLUMNS = 30;
const MAX_CELL = 200; // characters

class Row {
  index;
  key = ""; // the key of an entry of a Map
  cells = { __proto__: null };
  value = "";
  constructor(index) {
    this.index = index;
  }
}
sealedProto(Row);

class Table {
  indexName = "(index)";
  keyed = false; // whether there is a column for the keys of a Map
  valued = false; // whether there is a column for values that are not objects
  columns = new List();
  rows = new List();
  more = 0; // the number of rows that are not shown
}
sealedProto(Table);

function isObject(value) {
  return typeof value === "object" && value !== null && !internal.isProxy(value);
}

function cell(value) {
  const text = internal.inspect(value, 0);
  return text.length > MAX_CELL ? StringPrototypeSlice(text, 0, MAX_CELL) + "…" : text;
}

function propertyCell(descriptor) {
  if (primordials.ObjectPrototypeHasOwnProperty(descriptor, "value")) return cell(descriptor.value);
  return descriptor.get === undefined ? "[Setter]" : descriptor.set === undefined ? "[Getter]" : "[Getter/Setter]";
}

// isWide reports whether a list of the object's keys would take too long.
function isWide(object) {
  if (ArrayIsArray(object)) return object.length > MAX_KEYS;
  if (TypedArrayPrototypeGetTag(object) !== undefined) return lengthOf(object) > MAX_KEYS;
  return (attempt(StringPrototypeValueOf, object) ?? "").length > MAX_KEYS;
}

// inspectTable draws the contents of an object, array, Map or Set. It returns undefined when it cannot draw the value
// as a table.
internal.inspectTable = (data, only) => {
  if (!isObject(data) || isWide(data)) return undefined;
  const table = new Table();
  if (attempt(MapPrototypeGetSize, data) !== undefined) mapRows(table, data);
  else if (attempt(SetPrototypeGetSize, data) !== undefined) setRows(table, data);
  else propertyRows(table, data);
  if (ArrayIsArray(only)) {
    table.columns = new List();
    for (let i = 0; i < only.length && i < MAX_COLUMNS; i++) table.columns[i] = internal.toDOMString(only[i]);
  }
  return draw(table);
};

function propertyRows(table, data) {
  const keys = ReflectOwnKeys(data);
  for (let i = 0; i < keys.length; i++) {
    if (table.rows.length >= MAX_ITEMS) {
      table.more = keys.length - i - (ArrayIsArray(data) ? 1 : 0); // "length" is not a row
      return;
    }
    const descriptor = ReflectGetOwnPropertyDescriptor(data, keys[i]);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    const row = add(table, typeof keys[i] === "symbol" ? SymbolPrototypeToString(keys[i]) : keys[i]);
    if (isObject(descriptor.value)) fillRow(table, row, descriptor.value);
    else {
      table.valued = true;
      row.value = propertyCell(descriptor);
    }
  }
}

function mapRows(table, map) {
  table.indexName = "(iteration index)";
  table.keyed = table.valued = true;
  const iterator = MapPrototypeEntries(map);
  for (let i = 0; i < MAX_ITEMS; i++) {
    const step = MapIteratorPrototypeNext(iterator);
    if (step.done) return;
    const row = add(table, `${i}`);
    row.key = cell(step.value[0]);
    row.value = cell(step.value[1]);
  }
  table.more = MapPrototypeGetSize(map) - MAX_ITEMS;
}

function setRows(table, set) {
  table.indexName = "(iteration index)";
  table.valued = true;
  const iterator = SetPrototypeValues(set);
  for (let i = 0; i < MAX_ITEMS; i++) {
    const step = SetIteratorPrototypeNext(iterator);
    if (step.done) return;
    add(table, `${i}`).value = cell(step.value);
  }
  table.more = SetPrototypeGetSize(set) - MAX_ITEMS;
}

function add(table, index) {
  const row = new Row(index.length > MAX_CELL ? StringPrototypeSlice(index, 0, MAX_CELL) + "…" : index);
  table.rows[table.rows.length] = row;
  return row;
}

function fillRow(table, row, object) {
  if (isWide(object)) return;
  const { columns } = table;
  const keys = ReflectOwnKeys(object);
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i];
    if (typeof key === "symbol") continue;
    const descriptor = ReflectGetOwnPropertyDescriptor(object, key);
    if (descriptor === undefined || !descriptor.enumerable) continue;
    if (ArrayPrototypeIndexOf(columns, key) === -1) {
      if (columns.length >= MAX_COLUMNS) continue;
      columns[columns.length] = key;
    }
    row.cells[key] = propertyCell(descriptor);
  }
}

// lineOf returns the cells of a row. For null it returns the cells of the head.
function lineOf(table, row) {
  const line = new List();
  line[0] = row === null ? table.indexName : row.index;
  if (table.keyed) line[line.length] = row === null ? "Key" : row.key;
  for (let c = 0; c < table.columns.length; c++) {
    const name = table.columns[c];
    line[line.length] = row === null ? name : row.cells[name] ?? "";
  }
  if (table.valued) line[line.length] = row === null ? "Values" : row.value;
  return line;
}

function draw(table) {
  const lines = new List();
  lines[0] = lineOf(table, null);
  for (let i = 0; i < table.rows.length; i++) lines[i + 1] = lineOf(table, table.rows[i]);
  const widths = new List();
  for (let c = 0; c < lines[0].length; c++) {
    widths[c] = 0;
    for (let r = 0; r < lines.length; r++) if (lines[r][c].length > widths[c]) widths[c] = lines[r][c].length;
  }
  let out = rule(widths, "┌", "┬", "┐");
  for (let r = 0; r < lines.length; r++) {
    out += "\n│";
    for (let c = 0; c < widths.length; c++) out += ` ${StringPrototypePadEnd(lines[r][c], widths[c])} │`;
    if (r === 0) out += "\n" + rule(widths, "├", "┼", "┤");
  }
  out += `\n${rule(widths, "└", "┴", "┘")}`;
  return table.more === 0 ? out : `${out}\n... ${table.more} more row${table.more === 1 ? "" : "s"}`;
}

function rule(widths, left, middle, right) {
  let out = left;
  for (let c = 0; c < widths.length; c++) {
    out += StringPrototypeRepeat("─", widths[c] + 2) + (c + 1 < widths.length ? middle : right);
  }
  return out;
}
