import Papa from "papaparse";

export default {
  async task(event) {
    const text = await event.text();
    const rows = Papa.parse(text, { header: true, dynamicTyping: true, skipEmptyLines: true });
    const steps = [];
    Papa.parse(text, { step: ({ data }) => steps.push(data.length) });
    const plain = Papa.parse(text.replaceAll(",", ";"));
    return {
      data: rows.data, fields: rows.meta.fields, errors: rows.errors, steps, delimiter: plain.meta.delimiter,
      back: Papa.unparse(rows.data, { newline: "\n" }), tsv: Papa.unparse([["a", "b\tc"], [1, 'say "x"']], { delimiter: "\t" }),
    };
  },
};
