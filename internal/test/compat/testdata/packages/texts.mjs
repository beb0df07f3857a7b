// Packages of texts, templates, words and times.
import { marked } from "marked";
import MarkdownIt from "markdown-it";
import Handlebars from "handlebars";
import Mustache from "mustache";
import { Liquid } from "liquidjs";
import { Eta } from "eta/core";
import nunjucks from "nunjucks";
import slugify from "slugify";
import * as cases_ from "change-case";
import pluralize from "pluralize";
import { LinkifyIt } from "linkify-it";
import i18next from "i18next";
import { IntlMessageFormat } from "intl-messageformat";
import prettyBytes from "pretty-bytes";
import bytes from "bytes";
import ms from "ms";
import { compile, match } from "path-to-regexp";
import { add, formatDistance, formatISO, intervalToDuration, parse } from "date-fns";
import { de } from "date-fns/locale";
import dayjs from "dayjs";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";
import { DateTime, Interval } from "luxon";
import { CronExpressionParser } from "cron-parser";
import * as recurring from "rrule";
import { worker } from "./answers.mjs";

const { RRule } = recurring.default ?? recurring; // CommonJS in node
dayjs.extend(utc);
dayjs.extend(timezone);
const at = Date.UTC(2026, 2, 29, 0, 30);
const data = { title: "A & B", items: [{ n: 1, name: "<x>" }, { n: 2, name: "ü" }] };
const text = "# Title\n\nSome *text* with [a link](https://example.com?a&b) and https://example.org.\n\n- [x] one\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n";

export const cases = {
  marked: () => marked.parse(text),
  "markdown-it": () => new MarkdownIt({ linkify: true, typographer: true, html: true }).render(text + '"quoted" -- (c)'),
  handlebars: () => Handlebars.compile("{{title}} {{#each items}}{{@index}}:{{name}} {{/each}}")(data),
  mustache: () => Mustache.render("{{title}} {{{title}}} {{#items}}{{n}}={{name}} {{/items}}{{^none}}none{{/none}}{{> part}}", data, { part: "[{{title}}]" }),
  async liquidjs() {
    const engine = new Liquid();
    engine.registerFilter("twice", (s) => s + s);
    return engine.parseAndRender("{{ title | escape | twice }}{% for i in items %} {{ forloop.index }}{{ i.name | upcase }}{% endfor %} {{ 0 | date: '%Y-%m-%d' }}", data);
  },
  eta: () => new Eta().renderString("<%= it.title %>", data),
  nunjucks: () => nunjucks.renderString("{{ title }}", data),
  slugify: () => [slugify("Größe & Ärger — ça va?", { lower: true, strict: true, locale: "de" }), slugify("a b")],
  "change-case": () => [cases_.camelCase("some words-here"), cases_.constantCase("someWordsHere2"), cases_.kebabCase("ÄpfelUnd Birnen")],
  pluralize: () => [pluralize("person", 2, true), pluralize.singular("mice"), pluralize("schema")],
  "linkify-it": () => new LinkifyIt().match("see example.com/a(b), mail me@x.example or http://ü.example/?q=1."),
  async i18next() {
    const i = i18next.createInstance();
    await i.init({ lng: "de", resources: { de: { translation: { hi: "Hallo {{name}}", n_one: "{{count}} Ding", n_other: "{{count}} Dinge" } } } });
    return [i.t("hi", { name: "Ada" }), i.t("n", { count: 1 }), i.t("n", { count: 5 }), i.t("none")];
  },
  "intl-messageformat"() {
    const message = new IntlMessageFormat("{n, plural, one {# thing} other {# things}} at {d, date, ::yyyyMMdd} for {p, number, ::currency/EUR}", "en");
    return [message.format({ n: 1234, d: new Date(at), p: 9.5 }), new IntlMessageFormat("{n, selectordinal, one {#st} two {#nd} other {#th}}", "en").format({ n: 22 })];
  },
  "pretty-bytes": () => [prettyBytes(1337), prettyBytes(1e10, { locale: "de" }), prettyBytes(2048, { binary: true })],
  bytes: () => [bytes("1.5GB"), bytes(1536, { unitSeparator: " " })],
  ms: () => [ms("2.5 days"), ms(90_000, { long: true })],
  "path-to-regexp": () => [match("/users/:id{/posts/*rest}")("/users/7/posts/a/b"), compile("/a/:b")({ b: "ü/" })],
  "date-fns": () => [formatISO(add(at, { months: 1, days: 2 })), formatDistance(at, at + 9e7, { locale: de }), parse("03/04/2026", "dd/MM/yyyy", new Date(0)), intervalToDuration({ start: 0, end: at })],
  dayjs: () => [dayjs.utc(at).add(1, "month").format("YYYY-MM-DD HH:mm"), dayjs(at).tz("Europe/Berlin").add(1, "hour").format(), dayjs(at).diff(dayjs(0), "month")],
  luxon: () => [DateTime.fromMillis(at, { zone: "Europe/Berlin" }).plus({ hours: 1 }).toISO(), DateTime.fromISO("2026-W10-3", { zone: "utc" }).toISODate(), DateTime.fromMillis(at, { zone: "America/New_York" }).setLocale("fr").toLocaleString(DateTime.DATETIME_FULL), Interval.fromISO("2026-01-01T00Z/P1M").count("days")],
  "cron-parser"() {
    const next = CronExpressionParser.parse("30 2 * * 1-5", { currentDate: new Date(at), tz: "Europe/Berlin" });
    return [next.next().toISOString(), next.next().toISOString()];
  },
  rrule: () => new RRule({ freq: RRule.MONTHLY, byweekday: [RRule.FR.nth(-1)], count: 3, dtstart: new Date(at) }).all(),
};

export default worker(cases);
