// Packages that import Node's modules, as their authors ship them.
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { parse as parseCSV } from "csv-parse";
import { stringify } from "csv-stringify";
import { Parser, parseStringPromise, Builder } from "xml2js";
import { worker } from "./answers.mjs";

export const cases = {
  "csv-stringify": () => new Promise((done, fail) => {
    stringify([[1, "a,b"], [2, "c\"d"]], { header: true, columns: ["n", "text"] }, (error, text) => (error ? fail(error) : done(text)));
  }),
  async "csv-stringify as a stream"() {
    let text = "";
    await pipeline(Readable.from([[1, 2], ["x", null], [true, { a: 1 }]]), stringify({ delimiter: ";", quoted: true }), async (parts) => {
      for await (const part of parts) text += part;
    });
    return text;
  },
  "csv-stringify refuses": () => { try { stringify({ delimiter: 5 }); } catch (e) { return [e.code, e.message]; } },
  async "csv-parse as a stream"() {
    const rows = [];
    for await (const row of Readable.from(["a,b\n1,", "\"x, y\"\n"]).pipe(parseCSV({ columns: true }))) rows.push(row);
    return rows;
  },
  xml2js: async () => [
    await parseStringPromise("<a x='1'><b>c</b><b/></a>"), new Builder({ headless: true }).buildObject({ a: { $: { x: 1 }, b: "c" } }),
    await new Parser({ explicitArray: false }).parseStringPromise("<r><n>1</n></r>"),
  ],
};

export default worker(cases);
