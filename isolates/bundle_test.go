package isolates

import (
	"fmt"
	"strings"
)

// bundleOf returns code like that of a bundler, of about kb KB: a registry of modules with classes, tables, closures
// and regular expressions. An event uses the few modules that its path names.
func bundleOf(kb int) string {
	var b strings.Builder
	b.WriteString("var __defProp = Object.defineProperty;\nvar registry = new Map();\nfunction register(name, module) { registry.set(name, module); return module; }\n")
	n := 0
	for ; b.Len() < kb<<10-700; n++ {
		b.WriteString(strings.ReplaceAll(modulePart, "$", fmt.Sprint(n)))
	}
	fmt.Fprintf(&b, `
export default {
  async fetch(request) {
    const at = Number(new URL(request.url).searchParams.get("at") ?? 0);
    const out = [];
    for (let i = 0; i < 5 && i < registry.size; i++) {
      const module = registry.get("m" + (at * 5 + i * 7) %% %d);
      if (module === undefined) continue;
      out.push(await module.handle({ id: i, name: "Ada Lovelace", tags: ["a", "b"], total: 12.5 }));
    }
    return Response.json(out);
  },
};
`, max(n, 1))
	return b.String()
}

const modulePart = `
// src/modules/part-$.ts
var patterns$ = { name: /^[a-z]+(\s[a-z]+)*$/i, id: /^\d{1,9}(-$)?$/, date: /^(\d{4})-(\d{2})-(\d{2})$/ };
var defaults$ = { limit: 100 + $, retries: 3, labels: ["draft", "open", "paid", "void"], nested: { currency: "EUR", tax: 0.19, rounding: 2 } };
var ValidationError$ = class extends Error {
  constructor(field, message) {
    super(field + ": " + message);
    this.name = "ValidationError$";
    this.field = field;
  }
};
var Invoice$ = class _Invoice$ {
  #lines = [];
  constructor(options = {}) {
    this.options = { ...defaults$, ...options };
    this.createdAt = 0;
  }
  static from(input) {
    const invoice = new _Invoice$({ limit: input.id });
    for (const tag of input.tags ?? []) invoice.add({ tag, price: input.total / 2, quantity: 2 });
    return invoice;
  }
  add(line) {
    if (this.#lines.length >= this.options.limit + 10) throw new ValidationError$("lines", "too many");
    this.#lines.push(line);
    return this;
  }
  get net() {
    return this.#lines.reduce((sum, line) => sum + line.price * line.quantity, 0);
  }
  get gross() {
    const { tax, rounding } = this.options.nested;
    return Number((this.net * (1 + tax)).toFixed(rounding));
  }
  toJSON() {
    return { net: this.net, gross: this.gross, lines: this.#lines.map(({ tag, price }) => ({ tag, price })) };
  }
  remove(predicate) {
    const before = this.#lines.length;
    this.#lines = this.#lines.filter((line) => !predicate(line));
    return before - this.#lines.length;
  }
};
function validate$(input) {
  const errors = [];
  if (!patterns$.name.test(input.name)) errors.push(new ValidationError$("name", "is not a name"));
  if (typeof input.id !== "number" || !Number.isInteger(input.id)) errors.push(new ValidationError$("id", "is not an integer"));
  return errors;
}
async function retry$(fn, times = defaults$.retries) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await fn(attempt);
    } catch (error) {
      if (attempt >= times) throw error;
    }
  }
}
var part$_default = register("m$", {
  name: "part-$",
  async handle(input) {
    const errors = validate$(input);
    if (errors.length > 0) return { ok: false, errors: errors.map(String) };
    const invoice = await retry$(async () => Invoice$.from(input));
    return { ok: true, invoice, summary: ` + "`${input.name}: ${invoice.gross} EUR`" + ` };
  },
  describe() {
    const lines = [];
    for (const [key, value] of Object.entries(defaults$)) lines.push(key + "=" + JSON.stringify(value));
    switch (lines.length % 4) {
      case 0: return lines.join(";");
      case 1: return lines.join(", ");
      case 2: return lines.reverse().join(" ");
      default: return lines.slice(1).join("|");
    }
  },
});
`
