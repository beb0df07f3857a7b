// A task that reads a CSV file (RFC 4180: quotes, doubled quotes, line breaks in quotes, CRLF or LF)
// and returns aggregates of each column.
//
//   pinwheel send task dev/csv-report --data-file sales.csv --content-type text/csv

export default {
  async task(event) {
    const text = await event.text();
    let table;
    try {
      table = toTable(parse(text));
    } catch (error) {
      // The file will not be better the next time.
      event.noRetry();
      throw error;
    }
    return { rows: table.rows.length, columns: table.names.map((name, i) => aggregate(name, table.rows, i)) };
  },
};

// parse returns the records as arrays of strings, each with the line on which it begins.
function parse(text) {
  const records = [];
  let fields = [];
  let pos = text.charCodeAt(0) === 0xfeff ? 1 : 0; // byte order mark
  let line = 1;
  let start = 1;

  const endRecord = () => {
    records.push({ line: start, fields });
    fields = [];
    start = line;
  };

  while (pos < text.length) {
    if (fields.length === 0 && text[pos] !== "," && isEnd(text, pos)) {
      // A line with nothing on it is no record.
      pos += text[pos] === "\r" ? 2 : 1;
      start = ++line;
      continue;
    }
    if (text[pos] === '"') {
      const field = quoted(text, pos, line);
      fields.push(field.value);
      line += field.lines;
      pos = field.end;
      if (pos < text.length && !isEnd(text, pos)) {
        throw new Error(`line ${line}: a comma or the end of the line must follow a closing quote`);
      }
    } else {
      let end = pos;
      while (end < text.length && !isEnd(text, end)) {
        if (text[end] === '"') {
          throw new Error(`line ${line}: a quote in a field without quotes`);
        }
        end++;
      }
      fields.push(text.slice(pos, end));
      pos = end;
    }
    if (text[pos] === ",") {
      pos++;
      if (pos === text.length) fields.push("");
      continue;
    }
    if (pos < text.length) {
      pos += text[pos] === "\r" ? 2 : 1;
      line++;
    }
    endRecord();
  }
  if (fields.length > 0) endRecord();
  return records;
}

// isEnd reports whether a field ends at text[i]: at a comma, LF or CRLF.
function isEnd(text, i) {
  const c = text[i];
  return c === "," || c === "\n" || (c === "\r" && text[i + 1] === "\n");
}

// quoted reads the field whose opening quote is at text[pos].
function quoted(text, pos, line) {
  let value = "";
  let from = pos + 1;
  for (;;) {
    const quote = text.indexOf('"', from);
    if (quote < 0) {
      throw new Error(`line ${line}: the quote that is opened here is never closed`);
    }
    value += text.slice(from, quote);
    if (text[quote + 1] !== '"') {
      return { value, end: quote + 1, lines: value.split("\n").length - 1 };
    }
    value += '"';
    from = quote + 2;
  }
}

// toTable takes the first record for the names of the columns, and wants all others to be as long.
function toTable(records) {
  if (records.length === 0) {
    throw new Error("the file is empty: its first line names the columns");
  }
  const [{ fields: names }, ...rest] = records;
  for (const { line, fields } of rest) {
    if (fields.length !== names.length) {
      throw new Error(`line ${line}: ${fields.length} fields, where the first line has ${names.length}`);
    }
  }
  return { names, rows: rest.map((record) => record.fields) };
}

// aggregate summarizes a column: as numbers when every value that is there is one, else as text.
function aggregate(name, rows, column) {
  const values = rows.map((row) => row[column]).filter((value) => value.trim() !== "");
  const empty = rows.length - values.length;
  const numbers = values.map(Number);
  if (values.length === 0 || !numbers.every(Number.isFinite)) {
    return {
      name, type: "text", count: values.length, empty,
      distinct: new Set(values).size,
      longest: values.reduce((longest, value) => Math.max(longest, value.length), 0),
    };
  }
  const sum = numbers.reduce((total, n) => total + n, 0);
  return {
    name, type: "number", count: numbers.length, empty, sum, mean: sum / numbers.length,
    min: numbers.reduce((a, b) => Math.min(a, b)),
    max: numbers.reduce((a, b) => Math.max(a, b)),
  };
}
