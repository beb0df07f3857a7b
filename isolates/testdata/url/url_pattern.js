// URLPattern: patterns and what they match, by tables.

const components = ["protocol", "username", "password", "hostname", "port", "pathname", "search", "hash"];

// matches checks rows of [constructor arguments, exec arguments, groups by component or null].
function matches(name, rows) {
  test(name, () => {
    for (const [given, input, want] of rows) {
      const what = JSON.stringify([given, input]);
      const pattern = new URLPattern(...given);
      const result = pattern.exec(...input);
      assert.equal(pattern.test(...input), want !== null, what);
      if (want === null) {
        assert.equal(result, null, what);
        continue;
      }
      assert.notEqual(result, null, what);
      for (const component of Object.keys(want)) assert.deepEqual({ ...result[component].groups }, want[component], `${what} ${component}`);
    }
  });
}

// shows checks rows of [constructor arguments, components].
function shows(name, rows) {
  test(name, () => {
    for (const [given, want] of rows) {
      const pattern = new URLPattern(...given);
      for (const component of Object.keys(want)) assert.equal(pattern[component], want[component], `${JSON.stringify(given)} ${component}`);
    }
  });
}

function refuses(name, rows) {
  test(name, () => {
    for (const given of rows) assert.throws(() => new URLPattern(...given), TypeError, JSON.stringify(given));
  });
}

const path = (pattern, input, groups) => [[{ pathname: pattern }], [{ pathname: input }], groups === null ? null : { pathname: groups }];

matches("fixed text", [
  path("/books", "/books", {}), path("/books", "/book", null), path("/books", "/books/", null), path("/books", "/Books", null),
  path("/books", "/a/../books", {}), path("/a/../books", "/books", {}), path("/b%20c", "/b c", {}), path("/b c", "/b%20c", {}),
  path("/ü", "/%C3%BC", {}), path("/%c3%bc", "/ü", null), path("/a.b", "/axb", null),
  path("/a\\+", "/a+", {}), path("/[a]", "/[a]", {}), path("/a|b", "/a|b", {}), path("/^$", "/^$", {}), path("books", "/books", null),
]);

matches("named groups", [
  path("/books/:id", "/books/12", { id: "12" }), path("/books/:id", "/books/", null), path("/books/:id", "/books/12/", null),
  path("/books/:id", "/books/1/2", null), path("/:a/:b", "/x/y", { a: "x", b: "y" }), path("/:a-:b", "/x-y", { a: "x", b: "y" }),
  path("/:file.:type", "/a.b.c", { file: "a", type: "b.c" }), path("/:ü", "/x", { "ü": "x" }), path("/:$_1", "/x", { "$_1": "x" }),
  path("/:a\u200cb", "/x", { "a\u200cb": "x" }), path("/:𠮷", "/x", { "𠮷": "x" }), path("/:__proto__", "/x", JSON.parse('{"__proto__":"x"}')),
  path("/:constructor", "/x", { constructor: "x" }), path(":all", "anything", { all: "anything" }),
]);

matches("modifiers", [
  path("/a/:b?", "/a", { b: undefined }), path("/a/:b?", "/a/x", { b: "x" }), path("/a/:b?", "/a/", null), path("/a/:b?", "/a/x/y", null),
  path("/a/:b*", "/a", { b: undefined }), path("/a/:b*", "/a/x/y", { b: "x/y" }), path("/a/:b*", "/ax", null), path("/a/:b*", "/a/", null),
  path("/a/:b+", "/a", null), path("/a/:b+", "/a/x", { b: "x" }), path("/a/:b+", "/a/x/y/z", { b: "x/y/z" }),
  path("/a{/b}?", "/a", {}), path("/a{/b}?", "/a/b", {}), path("/a{/b}?", "/a/b/b", null), path("/a{/b}+", "/a", null),
  path("/a{/b}+", "/a/b/b", {}), path("/a{/b}*", "/a", {}), path("/a{/b}*", "/a/b/b/b", {}), path("/a{/b}", "/a/b", {}), path("/a{/b}", "/a", null),
  path("{/x:n([0-9])y}+", "/x1y/x2y", { n: "1y/x2" }), path("{:a-}?b", "b", { a: undefined }), path("{:a-}?b", "q-b", { a: "q" }),
]);

matches("wildcards and regular expressions", [
  path("/a/*", "/a/", { 0: "" }), path("/a/*", "/a/b/c", { 0: "b/c" }), path("/a/*", "/a", null), path("/a/*?", "/a", { 0: undefined }),
  path("/a/*+", "/a/", { 0: "" }), path("/a/**", "/a", { 0: undefined }), path("*/*", "a/b", { 0: "a", 1: "b" }), path("/(\\d+)", "/12", { 0: "12" }),
  path("/(\\d+)", "/1a", null), path("/:id(\\d+)", "/12", { id: "12" }), path("/:id(\\d+)?", "/", null), path("/:id(\\d+)?", "", { id: undefined }),
  path("/(a|b)(c)?", "/a", { 0: "a", 1: undefined }),
]);

matches("every component", [
  [[{ protocol: "http{s}?" }], ["https://h/"], { protocol: {} }], [[{ protocol: "http{s}?" }], ["ftp://h/"], null],
  [[{ protocol: "*" }], [{ protocol: "x-y" }], { protocol: { 0: "x-y" } }], [[{ username: "ü" }], [{ username: "ü" }], { username: {} }],
  [[{ username: ":u", password: ":p" }], ["https://me:pw@h/"], { username: { u: "me" }, password: { p: "pw" } }],
  [[{ hostname: "*.example.com" }], ["https://a.b.example.com/"], { hostname: { 0: "a.b" } }],
  [[{ hostname: ":sub.example.com" }], ["https://a.b.example.com/"], null], [[{ hostname: ":sub.example.com" }], ["https://a.example.com/"], { hostname: { sub: "a" } }],
  [[{ hostname: "münchen.de" }], ["https://xn--mnchen-3ya.de/"], { hostname: {} }], [[{ hostname: "EXAMPLE.com" }], ["https://example.com/"], { hostname: {} }],
  [[{ hostname: "[\\:\\:1]" }], ["http://[::1]/"], { hostname: {} }], [[{ hostname: "[:a]" }], ["http://[::1]/"], { hostname: { a: "::1" } }],
  [[{ hostname: "{[\\:\\:AB]}" }], ["http://[::ab]/"], { hostname: {} }],
  [[{ port: "8080" }], ["http://h:8080/"], { port: {} }], [[{ port: "" }], ["http://h:80/"], { port: {} }], [[{ port: "80" }], ["http://h:80/"], null],
  [[{ protocol: "http", port: "80" }], ["http://h/"], { port: {} }], [[{ port: ":p(80\\d\\d)" }], ["http://h:8081/"], { port: { p: "8081" } }],
  [[{ search: "q=:q" }], ["http://h/?q=1"], { search: { q: "1" } }], [[{ search: "?q=:q" }], [{ search: "?q=1" }], { search: { q: "1" } }],
  [[{ hash: "#:h" }], ["http://h/#x/y"], { hash: { h: "x/y" } }], [[{ search: "" }], ["http://h/?"], {}], [[{ search: "" }], ["http://h/?x"], null],
  [[{ search: "a b" }], ["http://h/?a%20b"], {}], [[{ hash: "ü" }], ["http://h/#ü"], {}],
]);

matches("constructor strings", [
  [["https://h/a?b#c"], ["https://h/a?b#c"], { pathname: {}, search: {}, hash: {} }], [["https://h/a?b#c"], ["https://h/a?b#d"], null],
  [["https://h"], ["https://h/any?x#y"], { pathname: { 0: "/any" }, search: { 0: "x" }, hash: { 0: "y" } }], [["https://h"], ["https://h:8080/"], null],
  [["https://h:*/"], ["https://h:8080/"], { port: { 0: "8080" } }], [["http{s}?://{:sub.}?h/:p"], ["http://h/x"], { hostname: { sub: undefined }, pathname: { p: "x" } }],
  [["https://u\\:p@h"], ["https://u:p@h/"], { username: {}, password: {} }], [["https://:u::p@h"], ["https://a:b@h/"], { username: { u: "a" }, password: { p: "b" } }],
  [["data\\:x/:y"], ["data:x/z"], { pathname: { y: "z" } }], [["/a/:b", "https://h"], ["https://h/a/1"], { pathname: { b: "1" } }],
  [["b", "https://h/a/c"], ["https://h/a/b"], { pathname: {} }], [["?q=:v", "https://h/p"], ["https://h/p?q=1"], { search: { v: "1" } }],
  [["#f", "https://h/p?q"], ["https://h/p?q#f"], {}], [["https://h/*\\?x"], ["https://h/a?x"], { pathname: { 0: "a" } }], [["https://h/*?x"], ["https://h/a?x"], null],
  [["http://[\\:\\:1]:80/"], ["http://[::1]/"], { port: {} }], [["file:///a"], ["file:///a"], {}], [["foo://*"], ["foo://bar"], { hostname: { 0: "bar" } }],
]);

matches("bases", [
  [[{ pathname: "/a" }], ["a", "https://h/"], { pathname: {} }], [[{ pathname: "/a" }], ["a", "nonsense"], null], [[{ pathname: "/a" }], ["a"], null],
  [[{ pathname: "/a/b" }], [{ pathname: "b", baseURL: "https://h/a/c" }], {}], [[{ pathname: "/a" }], [{ pathname: "/a", baseURL: "bad" }], null],
  [[{ pathname: "b", baseURL: "https://h/a/c?q#f" }], ["https://h/a/b?x#y"], { search: { 0: "x" } }], [[{ search: "x", baseURL: "https://h/a+b" }], ["https://h/a+b?x"], {}],
  [[{ baseURL: "https://u:p@h/a?q#f" }], ["https://h/a?q#f"], { username: { 0: "" }, password: { 0: "" } }], [[{ baseURL: "https://h/a?q#f" }], ["https://h/a?q"], null],
  [[{ username: "u" }], [{ baseURL: "https://u@h/" }], {}], [[{ username: "u" }], [{ hostname: "h", baseURL: "https://u@h/" }], null],
  [[{ pathname: "b", baseURL: "data:x" }], ["data:b"], {}],
]);

matches("case", [
  [[{ pathname: "/a/:B" }, { ignoreCase: true }], ["https://h/A/x"], { pathname: { B: "x" } }], [[{ pathname: "/a" }, { ignoreCase: 0 }], ["https://h/A"], null],
  [["https://h/a?b#c", { ignoreCase: true }], ["https://h/A?B#C"], {}], [["/a", "https://h", { ignoreCase: true }], ["https://h/A"], {}],
  [[{ username: "a" }, { ignoreCase: true }], [{ username: "A" }], null],
]);

shows("what components show", [
  [[], Object.fromEntries(components.map((c) => [c, "*"]))], [[undefined], { pathname: "*" }], [[null], { pathname: "*" }], [[{}, null], { pathname: "*" }],
  [[{ pathname: "/(.*)" }], { pathname: "/*" }], [[{ pathname: "/([^\\/]+?)" }], { pathname: "/([^\\/]+?)" }], [[{ pathname: "{/a}" }], { pathname: "/a" }],
  [[{ pathname: "/:a{b}" }], { pathname: "{/:a}b" }], [[{ pathname: ":a\\b" }], { pathname: "{:a}b" }], [[{ pathname: "*\\/*" }], { pathname: "*/{*}" }],
  [[{ pathname: "(a)(.*)" }], { pathname: "(a)(.*)" }], [[{ pathname: "(a)?(.*)" }], { pathname: "(a)?*" }], [[{ pathname: "{:a\\b}" }], { pathname: "{:a\\b}" }],
  [[{ pathname: "{:a\\.b}" }], { pathname: "{:a.b}" }], [[{ pathname: "{a:b}?" }], { pathname: "{a:b}?" }], [[{ pathname: "/{}a" }], { pathname: "/a" }],
  [[{ pathname: "a{}?b" }], { pathname: "ab" }], [[{ protocol: "https:" }], { protocol: "https" }], [[{ protocol: "HTTPS" }], { protocol: "https" }],
  [[{ search: "?a", hash: "#b" }], { search: "a", hash: "b" }], [[{ pathname: "a b" }], { pathname: "a%20b" }], [[{ protocol: "data", pathname: "a b" }], { pathname: "a b" }],
  [[{ pathname: "/\\{" }], { pathname: "/%7B" }], [[{ pathname: "/\\(" }], { pathname: "/\\(" }], [[{ pathname: "/\\:a" }], { pathname: "/\\:a" }],
  [["https://h"], { port: "", pathname: "*", search: "*", hash: "*", username: "*" }], [["https://h?x"], { pathname: "/", search: "x", hash: "*" }],
  [["https://h#x"], { pathname: "/", search: "", hash: "x" }], [["https://h:443/"], { port: "" }], [["data\\:x"], { hostname: "", port: "", pathname: "x" }],
  [["foo://h"], { pathname: "*" }], [["foo://h?x"], { pathname: "", search: "x" }], [[{ hostname: "a/b" }], { hostname: "a" }], [[{ hostname: "a\tb" }], { hostname: "ab" }],
  [[{ port: "80x" }], { port: "80" }], [[{ hostname: "ü" }], { hostname: "xn--tda" }], [["/a*", "https://h/x?y#z"], { search: "*", hash: "*", hostname: "h" }],
  [[{ pathname: "x", baseURL: "https://h/a{b}/c" }], { pathname: "/a%7Bb%7D/x" }], [[{ search: "x", baseURL: "https://h/a(b)*/c" }], { pathname: "/a\\(b\\)\\*/c" }],
]);

refuses("what is no pattern", [
  ["/a"], ["h/a"], [""], ["https://h{"], ["https://{a{b}}"], [{ pathname: "/:a/:a" }], [{ pathname: "(" }], [{ pathname: "()" }], [{ pathname: "(?:a)" }], [{ pathname: "(a(b))" }],
  [{ pathname: "(é)" }], [{ pathname: "(\\é)" }], [{ pathname: "(a\\" }], [{ pathname: "/(\\m)" }], [{ pathname: "/([)" }], [{ pathname: "a\\" }], [{ pathname: ":" }], [{ pathname: "/:1" }],
  [{ pathname: "a}" }], [{ pathname: "{a" }], [{ pathname: "{:a:b}" }], [{ pathname: "+" }], [{ pathname: "a?" }], [{ hostname: "a b" }], [{ hostname: "a<b" }],
  [{ hostname: "a\\:b" }], [{ hostname: "[x]" }], [{ port: "x" }], [{ port: "99999" }], [{ protocol: "1x" }], [{ protocol: "ü" }], [{ pathname: "/a", baseURL: "" }], [{ pathname: "/a", baseURL: "/b" }],
  ["/a", ""], ["/a", "bad"], [{}, "https://h"], ["https://h", undefined, {}], [{}, 5], ["data:foobar"], [Symbol()], [{ pathname: Symbol() }],
]);

test("results", () => {
  const pattern = new URLPattern({ pathname: "/:a/:b?" });
  const r = pattern.exec("x", "https://h/");
  assert.deepEqual(Object.keys(r), ["hash", "hostname", "inputs", "password", "pathname", "port", "protocol", "search", "username"]);
  assert.deepEqual(r.inputs, ["x", "https://h/"]);
  assert.deepEqual(Object.keys(r.pathname), ["groups", "input"]);
  assert.equal(r.pathname.input, "/x");
  assert.equal(Object.getPrototypeOf(r.pathname.groups), Object.prototype);
  assert.deepEqual(Object.keys(r.pathname.groups), ["a", "b"]);
  assert.deepEqual(r.protocol, { groups: { 0: "https" }, input: "https" });
  const given = { pathname: "/q", extra: 1, search: undefined, hash: 5 };
  const s = pattern.exec(given);
  assert.notEqual(s.inputs[0], given);
  assert.deepEqual(s.inputs, [{ hash: "5", pathname: "/q" }]);
  assert.deepEqual(new URLPattern().exec().inputs, [{}]);
  assert.deepEqual(new URLPattern().exec(undefined, undefined).inputs, [{}]);
  assert.deepEqual(pattern.exec(new URL("https://h/z")).inputs, [{ hash: "", hostname: "h", password: "", pathname: "/z", port: "", protocol: "https:", search: "", username: "" }]);
  assert.throws(() => pattern.test({ pathname: "/a" }, "https://h"), TypeError);
  assert.throws(() => pattern.exec({}, ""), TypeError);
});

test("hasRegExpGroups", () => {
  for (const p of ["*", "/:a", "/a{b}?", "/:a?", "(.*)", "([^\\/]+?)"]) assert.equal(new URLPattern({ pathname: p }).hasRegExpGroups, false, p);
  for (const c of components) assert.equal(new URLPattern({ [c]: ":x(1|2)" }).hasRegExpGroups, true, c);
});

test("shape", () => {
  assert.equal(URLPattern.length, 0);
  assert.deepEqual([URLPattern.prototype.test.length, URLPattern.prototype.exec.length], [0, 0]);
  assert.throws(() => URLPattern.prototype.test.call({}, "x"), TypeError);
  assert.throws(() => Object.getOwnPropertyDescriptor(URLPattern.prototype, "pathname").get.call({}), TypeError);
  assert.deepEqual(Object.keys(URLPattern.prototype), [...components, "hasRegExpGroups", "test", "exec"]);
  assert.throws(() => { "use strict"; new URLPattern().pathname = 1; }, TypeError);
  class Mine extends URLPattern {}
  assert.ok(new Mine({ pathname: "/a" }).test({ pathname: "/a" }));
});

test("members are read in order, once", () => {
  const seen = [];
  new URLPattern(new Proxy({}, { get: (_, key) => { seen.push(key); return undefined; } }), { get ignoreCase() { seen.push("ignoreCase"); return 1; } });
  assert.deepEqual(seen, ["baseURL", "hash", "hostname", "password", "pathname", "port", "protocol", "search", "username", "ignoreCase"]);
});

test("patched prototypes are not asked", async () => {
  const pattern = new URLPattern({ pathname: "/:a" });
  const boom = () => { throw new Error("asked"); };
  await patched(RegExp.prototype, "exec", { value: boom, writable: true }, () =>
    patched(RegExp.prototype, Symbol.match, { value: boom, writable: true }, () =>
      patched(Array.prototype, Symbol.iterator, { value: boom, writable: true }, () =>
        patched(Object.prototype, "baseURL", { get: () => undefined }, () => {
          assert.equal(pattern.exec({ pathname: "/x" }).pathname.groups.a, "x");
          assert.equal(new URLPattern("https://h/:b(\\d)").exec("https://h/1").pathname.groups.b, "1");
        }))));
});

test("random patterns: a TypeError, or a pattern that says the same again", () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  let state = seed;
  const random = (n) => { state = (Math.imul(state, 1103515245) + 12345) >>> 0; return (state >>> 8) % n; };
  const alphabet = [..."/:ab(){}*?+\\.-1", "é", "𠮷", ":n", "(.*)", "{/x}"];
  let valid = 0;
  for (let i = 0; i < 1000; i++) {
    const text = Array.from({ length: 1 + random(10) }, () => alphabet[random(alphabet.length)]).join("");
    for (const component of ["pathname", "hostname", "search"]) {
      let pattern;
      try {
        pattern = new URLPattern({ [component]: text });
      } catch (error) {
        if (error.constructor !== TypeError) throw new Error(`seed ${seed}: ${component} ${JSON.stringify(text)}: ${error}`);
        continue;
      }
      valid++;
      if (/xn--|\d\.\d/.test(pattern[component])) continue; // parts of a host name become ASCII or an address one by one: together they need not be a host
      const again = new URLPattern({ [component]: pattern[component] });
      if (again[component] !== pattern[component]) throw new Error(`seed ${seed}: ${component} ${JSON.stringify([text, pattern[component], again[component]])}`);
      pattern.exec({ [component]: "/ab/x" });
    }
    try {
      new URLPattern(text, "https://h/a/b").test("https://h/a/ab");
    } catch (error) {
      if (error.constructor !== TypeError) throw new Error(`seed ${seed}: ${JSON.stringify(text)}: ${error}`);
    }
  }
  assert.ok(valid > 500, `seed ${seed}: ${valid} were valid`);
});
