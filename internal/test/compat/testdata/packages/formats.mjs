// Packages that read and write text formats.
import YAML from "yaml";
import { dump, load } from "js-yaml";
import * as toml from "smol-toml";
import superjson from "superjson";
import * as devalue from "devalue";
import { XMLBuilder, XMLParser } from "fast-xml-parser";
import Papa from "papaparse";
import { stringify } from "csv-stringify/browser/esm/sync";
import { parse as parseCSV } from "csv-parse/browser/esm/sync";
import * as cheerio from "cheerio";
import { parseHTML } from "linkedom/worker";
import { parseDocument, DomUtils } from "htmlparser2";
import sanitize from "sanitize-html";
import qs from "qs";
import { parse as parseCookie, serialize } from "cookie";
import mime from "mime";
import ICAL from "ical.js";
import { JSONPath } from "jsonpath-plus";
import patches from "fast-json-patch";
import he from "he";
import { decodeHTML, encodeXML } from "entities";
import { worker } from "./answers.mjs";

const table = [{ a: 1, b: 'x "y", z' }, { a: 2, b: "line\nline" }];
const page = '<ul class="list"><li id="one">One</li><li><a href="/two?a=1&amp;b">Two &euro;</a></li></ul>';

export const cases = {
  yaml() {
    const text = "# head\nname: Ada\nlist: &l [1, 2.5, ~]\nmore: *l\ntext: |\n  a\n  b\ndate: 2026-01-02\n";
    const doc = YAML.parseDocument(text);
    doc.set("name", "Bo");
    return [YAML.parse(text), String(doc), YAML.stringify({ a: [1, { b: "x: y" }] }), YAML.parseDocument("a: [").errors.map((e) => e.message)];
  },
  "js-yaml"() {
    let why;
    try { load("a: b: c"); } catch (e) { why = [e.name, e.reason]; }
    return [load("a: &x [1, 0x1F]\nb: *x\nd: 2026-01-02T03:04:05Z\n"), dump({ a: [1, "two"], b: { c: null } }), why];
  },
  "smol-toml": () => [toml.parse('title = "x"\n[a.b]\nc = [1, 2]\nd = 1979-05-27T07:32:00Z\n'), toml.stringify({ a: { b: [true, 1.5] } })],
  superjson() {
    const value = { at: new Date(0), map: new Map([["a", 1n]]), set: new Set([1]), re: /x/g, none: undefined };
    const text = superjson.stringify(value);
    return [text, superjson.parse(text).map.get("a") === 1n];
  },
  devalue() {
    const value = { at: new Date(0), map: new Map([[1, { a: 1 }]]), big: 5n };
    value.self = value;
    return [devalue.stringify(value), devalue.uneval(value), devalue.parse(devalue.stringify(value)).self.big];
  },
  "fast-xml-parser"() {
    const options = { ignoreAttributes: false, cdataPropName: "cdata" };
    const data = new XMLParser(options).parse('<?xml version="1.0"?><a x="1"><b>2</b><b>&lt;</b><c><![CDATA[<d>]]></c></a>');
    return [data, new XMLBuilder({ ...options, format: true }).build(data)];
  },
  papaparse: () => [Papa.parse("a,b\n1,\"x, y\"\n", { header: true, dynamicTyping: true }).data, Papa.unparse(table)],
  "csv-stringify": () => [stringify(table, { header: true }), stringify([[1, null, true, new Date(0)]], { delimiter: ";" })],
  "csv-parse": () => [parseCSV('a;b\n1;"x ""y"""\n', { columns: true, delimiter: ";" })],
  cheerio() {
    const $ = cheerio.load(page);
    $("li#one").addClass("first").append("<b>!</b>");
    return [$("li").map((_, e) => $(e).text()).get(), $("a").attr("href"), $.html("ul"), $.extract({ links: [{ selector: "a", value: "href" }] })];
  },
  linkedom() {
    const { document } = parseHTML(`<html><body>${page}</body></html>`);
    document.querySelector("#one").textContent = "<1>";
    return [document.querySelectorAll("li").length, document.querySelector("li > a").getAttribute("href"), document.body.innerHTML];
  },
  htmlparser2() {
    const doc = parseDocument(page);
    return [DomUtils.textContent(doc), DomUtils.findOne((e) => e.name === "a", doc.children).attribs];
  },
  "sanitize-html": () => [sanitize(page + '<script>x()</script><a href="javascript:x()" onclick="x()">a</a>', { allowedTags: ["a", "li"] })],
  qs: () => [qs.parse("a[b][]=1&a[b][]=2&c=%C3%BC"), qs.stringify({ a: { b: ["1", { c: "ü" }] } })],
  cookie: () => [parseCookie("a=1; b=%C3%BC"), serialize("a", "ü", { httpOnly: true, maxAge: 60, path: "/", sameSite: "lax" })],
  mime: () => [mime.getType("a/b.webp"), mime.getExtension("text/markdown"), mime.getType("none")],
  "ical.js"() {
    const text = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nSUMMARY:Tea\\, late\r\nDTSTART:20260101T100000Z\r\nRRULE:FREQ=WEEKLY;COUNT=3\r\nEND:VEVENT\r\nEND:VCALENDAR";
    const event = new ICAL.Event(new ICAL.Component(ICAL.parse(text)).getFirstSubcomponent("vevent"));
    const times = [];
    for (let next, all = event.iterator(); (next = all.next());) times.push(next.toString());
    return [event.summary, times, event.component.toString()];
  },
  "jsonpath-plus": () => [JSONPath({ path: "$..b[0]", json: { a: { b: [1, 2] }, b: [3] } }), JSONPath({ path: "$.a[?(@.x>1)].x", json: { a: [{ x: 1 }, { x: 2 }] } })],
  "fast-json-patch"() {
    const list = patches.compare({ a: 1, b: [1, 2] }, { a: 2, b: [1] });
    return [list, patches.applyPatch({ a: 1, b: [1, 2] }, list).newDocument];
  },
  he: () => [he.encode("a ü <€>", { useNamedReferences: true }), he.decode("&lt;&#x1F600;&eacute;")],
  entities: () => [decodeHTML("&lt;&#x1F600;&eacute;&notin;"), encodeXML("ü < 😀")],
};

export default worker(cases);
