// URL: the parser, the attributes, the setters.

// [input, base or null, href or null when it must fail]
const parses = [
  ["http://example.com", null, "http://example.com/"],
  ["HTTP://EXAMPLE.com:80/../a/./b/%2e%2E/c?q#f", null, "http://example.com/a/c?q#f"],
  ["https://user:pa ss@host:443/", null, "https://user:pa%20ss@host/"],
  ["http://a:b@c:81/d?e#f", null, "http://a:b@c:81/d?e#f"],
  ["http://@host/", null, "http://host/"],
  ["http://:@host/", null, "http://host/"],
  ["http://user@/www", null, null],
  ["http:@/x", null, null],
  ["http://a@b@c/", null, "http://a%40b@c/"],
  ["  \t http://x/ \n", null, "http://x/"],
  ["ht\ntp://ex\tample.com/\r\npath", null, "http://example.com/path"],
  ["http:\\\\x\\y", null, "http://x/y"],
  ["http:/example.com/", null, "http://example.com/"],
  ["http:example.com/", null, "http://example.com/"],
  ["http:///example.com/", null, "http://example.com/"],
  ["http://", null, null],
  ["http://:80", null, null],
  ["http://host:65536/", null, null],
  ["http://host:65535/", null, "http://host:65535/"],
  ["http://host:00080/", null, "http://host/"],
  ["http://host:/", null, "http://host/"],
  ["http://host:8a/", null, null],
  ["http://host:-1/", null, null],
  ["http://ho st/", null, null],
  ["http://ho%20st/", null, null],
  ["http://ho%41st/", null, "http://hoast/"],
  ["http://a<b", null, null],
  ["http://a^b", null, null],
  ["http://a|b", null, null],
  ["http://a%b", null, null],
  ["http://exa%23mple.org", null, null],
  ["http://a_b.c/", null, "http://a_b.c/"],
  ["http://a.b./", null, "http://a.b./"],
  ["http://%zz/", null, null],
  ["", null, null],
  ["/path", null, null],
  ["//host/", null, null],
  ["?q", null, null],
  ["x", null, null],
  ["", "http://a/b?c#d", "http://a/b?c"],
  ["#f", "http://a/b?c#d", "http://a/b?c#f"],
  ["?q", "http://a/b?c#d", "http://a/b?q"],
  ["/r", "http://a/b/c", "http://a/r"],
  ["r", "http://a/b/c", "http://a/b/r"],
  ["../r", "http://a/b/c/d", "http://a/b/r"],
  ["../../../../r", "http://a/b/c", "http://a/r"],
  ["./", "http://a/b/c", "http://a/b/"],
  ["..", "http://a/b/c/d", "http://a/b/"],
  [".", "http://a/b/c", "http://a/b/"],
  ["//h/p", "https://a/b", "https://h/p"],
  ["\\\\h\\p", "https://a/b", "https://h/p"],
  ["http:r", "http://a/b/c", "http://a/b/r"],
  ["https:r", "http://a/b/c", "https://r/"],
  ["http:", "http://a/b", "http://a/b"],
  [":foo", "http://a/b", "http://a/:foo"],
  ["c:/x", "http://a/b", "c:/x"],
  ["data:text/plain,x", null, "data:text/plain,x"],
  ["data:text plain ?q", null, "data:text plain%20?q"],
  ["javascript:alert(1)", null, "javascript:alert(1)"],
  ["mailto:a@b", null, "mailto:a@b"],
  ["mailto:a b#c d", null, "mailto:a b#c%20d"],
  ["#x", "mailto:a@b", "mailto:a@b#x"],
  ["x", "mailto:a@b", null],
  ["foo://host/p", null, "foo://host/p"],
  ["foo://HOST/p", null, "foo://HOST/p"],
  ["foo://h:80/", null, "foo://h:80/"],
  ["foo://", null, "foo://"],
  ["foo:///p", null, "foo:///p"],
  ["foo:/p/../q", null, "foo:/q"],
  ["foo:/..//p", null, "foo:/.//p"],
  ["foo:p/../q", null, "foo:p/../q"],
  ["foo://ho st/", null, null],
  ["foo://é/", null, "foo://%C3%A9/"],
  ["foo://%zz/", null, "foo://%zz/"],
  ["foo://h/\\x", null, "foo://h/\\x"],
  ["web+demo:/.//not-a-host/", null, "web+demo:/.//not-a-host/"],
  ["file:///C|/x", null, "file:///C:/x"],
  ["file:c:\\x", null, "file:///c:/x"],
  ["file://localhost/x", null, "file:///x"],
  ["file://HOST/x", null, "file://host/x"],
  ["file:///C:/..", null, "file:///C:/"],
  ["..", "file:///C:/", "file:///C:/"],
  ["/x", "file:///C:/y", "file:///C:/x"],
  ["C|/x", "file://h/y", "file://h/C:/x"],
  ["file:?q", "file:///a/b", "file:///a/b?q"],
  ["file:", null, "file:///"],
  ["file://C:/x", null, "file:///C:/x"],
  ["http://a/b c\"<>`{}^|", null, "http://a/b%20c%22%3C%3E%60%7B%7D%5E|"],
  ["http://a/?b c\"<>`{}'|^", null, "http://a/?b%20c%22%3C%3E`{}%27|^"],
  ["foo://a/?'", null, "foo://a/?'"],
  ["http://a/#b c\"<>`{}'", null, "http://a/#b%20c%22%3C%3E%60{}'"],
  ["http://a/é?é#é", null, "http://a/%C3%A9?%C3%A9#%C3%A9"],
  ["http://a/😀", null, "http://a/%F0%9F%98%80"],
  ["http://a/\ud800", null, "http://a/%EF%BF%BD"],
  ["http://a/%", null, "http://a/%"],
  ["http://a/%zz%4", null, "http://a/%zz%4"],
  ["http://a/\0\x7f", null, "http://a/%00%7F"],
  ["http://u:p:q@h/", null, "http://u:p%3Aq@h/"],
  ["http://u/s@h/", null, "http://u/s@h/"],
  ["http://u?s@h/", null, "http://u/?s@h/"],
  ["http://[::1]/", null, "http://[::1]/"],
  ["http://[1:0:0:0:0:0:0:1]/", null, "http://[1::1]/"],
  ["http://[0:0:1:0:0:0:1:1]/", null, "http://[0:0:1::1:1]/"],
  ["http://[1:0:0:1:0:0:0:0]/", null, "http://[1:0:0:1::]/"],
  ["http://[2001:DB8::00ff]:80/", null, "http://[2001:db8::ff]/"],
  ["http://[::127.0.0.1]/", null, "http://[::7f00:1]/"],
  ["http://[::1.2.3]/", null, null],
  ["http://[::1.2.3.256]/", null, null],
  ["http://[::01.2.3.4]/", null, null],
  ["http://[1:2]/", null, null],
  ["http://[1:2:3:4:5:6:7:8:9]/", null, null],
  ["http://[::1", null, null],
  ["http://[::1%eth0]/", null, null],
  ["http://[:::1]/", null, null],
  ["http://[1::2::3]/", null, null],
  ["http://[1:2:3:4:5:6:7:]/", null, null],
  ["http://[12345::]/", null, null],
  ["http://1.2.3.4/", null, "http://1.2.3.4/"],
  ["http://0x7f.1/", null, "http://127.0.0.1/"],
  ["http://0300.1/", null, "http://192.0.0.1/"],
  ["http://2130706433/", null, "http://127.0.0.1/"],
  ["http://1.2.3/", null, "http://1.2.0.3/"],
  ["http://1.2.3.4./", null, "http://1.2.3.4/"],
  ["http://256/", null, "http://0.0.1.0/"],
  ["http://1.2.3.256/", null, null],
  ["http://1.2.3.4.5/", null, null],
  ["http://4294967296/", null, null],
  ["http://0x100000000/", null, null],
  ["http://1.2.3.08/", null, null],
  ["http://a.1.2.3/", null, null],
  ["http://foo.0x/", null, null],
  ["http://0x/", null, "http://0.0.0.0/"],
  ["http://1..2/", null, null],
  ["http://./", null, "http://./"],
  ["http://..a/", null, "http://..a/"],
  ["http://münchen.de/ä", null, "http://xn--mnchen-3ya.de/%C3%A4"],
  ["http://xn--mnchen-3ya.de/", null, "http://xn--mnchen-3ya.de/"],
  ["http://ＧＯ.com/", null, "http://go.com/"],
  ["http://a。b/", null, "http://a.b/"],
  ["http://faß.de/", null, "http://xn--fa-hia.de/"],
  ["http://FA\u1E9E.de/", null, "http://xn--fa-hia.de/"], // Unicode 15.1
  ["http://%C3%BC.de/", null, "http://xn--tda.de/"],
  ["http://\u00ad/", null, null],
  ["http://xn--/", null, "http://xn--/"],
  ["http://xn--.com/", null, "http://xn--.com/"],
  ["http://a.ｘn--。com/", null, null],
  ["http://xn--xn---epa/", null, "http://xn--xn---epa/"], // xn--é in punycode
  ["http://xn--a-yoc/", null, "http://xn--a-yoc/"],
  ["http://a\u3164\u180e\u2063b/", null, "http://ab/"],
  ["http://\u3164/", null, null],
  ["http://a.\u00ad/", null, "http://a./"],
  ["http://a.\u00ad.b/", null, "http://a..b/"],
  ["http://a.\u00ad.xn--/", null, null],
  ["http://\u2260/", null, "http://xn--1ch/"],
  ["ws://h:80/", null, "ws://h/"],
  ["wss://h:443/", null, "wss://h/"],
  ["ftp://h:21/", null, "ftp://h/"],
  ["http1.1-+:x", null, "http1.1-+:x"],
  ["1http://x", null, null],
  ["blob:https://h/x", null, "blob:https://h/x"],
  ["http://h//a//b/", null, "http://h//a//b/"],
  ["http://h/a/%2e", null, "http://h/a/"],
  ["http://h/a/.%2E/b", null, "http://h/b"],
  ["http://h/...", null, "http://h/..."],
];

test("parsing", () => {
  for (const [input, base, href] of parses) {
    const label = JSON.stringify([input, base]);
    const args = base === null ? [input] : [input, base];
    if (href === null) {
      assert.throws(() => new URL(...args), TypeError, label);
      assert.equal(URL.canParse(...args), false, label);
      assert.equal(URL.parse(...args), null, label);
      continue;
    }
    const url = new URL(...args);
    assert.equal(url.href, href, label);
    assert.equal(new URL(url.href).href, href, `${label} again`);
    assert.equal(URL.canParse(...args), true, label);
  }
});

test("attributes", () => {
  const u = new URL("https://us%20er:p%3Aw@example.org:8080/a/b;c?x=1&y=2#frag");
  assert.deepEqual([u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin],
    ["https:", "us%20er", "p%3Aw", "example.org:8080", "example.org", "8080", "/a/b;c", "?x=1&y=2", "#frag", "https://example.org:8080"]);
  assert.equal(String(u), u.href);
  assert.equal(JSON.stringify({ u }), JSON.stringify({ u: u.href }));
  const empty = new URL("http://h/?#");
  assert.deepEqual([empty.search, empty.hash, empty.href], ["", "", "http://h/?#"]);
});

test("origins", () => {
  const cases = { "http://h:80/x": "http://h", "https://h:8443/": "https://h:8443", "file:///x": "null", "foo://h/": "null", "data:x": "null",
    "blob:https://h:8443/id": "https://h:8443", "blob:foo": "null", "blob:file:///x": "null", "ws://h/": "ws://h", "about:blank": "null" };
  for (const [url, origin] of Object.entries(cases)) assert.equal(new URL(url).origin, origin, url);
});

// [href, attribute, value, href after]
const setters = [
  ["http://h/", "protocol", "https", "https://h/"],
  ["http://h/", "protocol", "https:rest", "https://h/"],
  ["http://h:443/", "protocol", "https", "https://h/"],
  ["http://h/", "protocol", "foo", "http://h/"],
  ["foo://h/", "protocol", "http", "foo://h/"],
  ["foo:x", "protocol", "bar", "bar:x"],
  ["http://h/", "protocol", "", "http://h/"],
  ["http://h/", "protocol", "1x", "http://h/"],
  ["http://u@h/", "protocol", "file", "http://u@h/"],
  ["file:///x", "protocol", "http", "file:///x"],
  ["http://h/", "username", "a b:@", "http://a%20b%3A%40@h/"],
  ["http://u:p@h/", "username", "", "http://:p@h/"],
  ["file:///x", "username", "u", "file:///x"],
  ["mailto:x", "username", "u", "mailto:x"],
  ["http://u:p@h/", "password", "", "http://u@h/"],
  ["http://h/", "password", "p/é", "http://:p%2F%C3%A9@h/"],
  ["http://h/", "host", "x:81", "http://x:81/"],
  ["http://h:81/", "host", "x", "http://x:81/"],
  ["http://h/", "host", "x:80", "http://x/"],
  ["http://h:81/", "host", "x:", "http://x:81/"],
  ["http://h/", "host", "x/y?z", "http://x/"],
  ["http://h/", "host", "", "http://h/"],
  ["http://h/", "host", "a b", "http://h/"],
  ["http://h/", "host", "[::1]:82", "http://[::1]:82/"],
  ["http://h/", "host", "x:70000", "http://x/"],
  ["foo://h/", "host", "", "foo:///"],
  ["foo:/x", "host", "h", "foo://h/x"],
  ["mailto:x", "host", "h", "mailto:x"],
  ["file:///x", "host", "localhost", "file:///x"],
  ["file:///x", "host", "h:80", "file:///x"],
  ["http://h:81/", "hostname", "x", "http://x:81/"],
  ["http://h:81/", "hostname", "x:82", "http://h:81/"],
  ["http://h/", "hostname", "0x7f000001", "http://127.0.0.1/"],
  ["http://h/", "port", "8080", "http://h:8080/"],
  ["http://h:8080/", "port", "80", "http://h/"],
  ["http://h:8080/", "port", "", "http://h/"],
  ["http://h/", "port", "90xyz", "http://h:90/"],
  ["http://h:1/", "port", "x", "http://h:1/"],
  ["http://h:1/", "port", "65536", "http://h:1/"],
  ["http://h/", "port", " 9", "http://h/"],
  ["file:///", "port", "1", "file:///"],
  ["http://h/a", "pathname", "b/../c d", "http://h/c%20d"],
  ["http://h/a", "pathname", "", "http://h/"],
  ["http://h/a", "pathname", "?#", "http://h/%3F%23"],
  ["http://h/a", "pathname", "\\x", "http://h/x"],
  ["foo://h/a", "pathname", "", "foo://h"],
  ["foo://h/a", "pathname", "\\x", "foo://h/\\x"],
  ["foo:/a", "pathname", "//p", "foo:/.//p"],
  ["mailto:x", "pathname", "y", "mailto:x"],
  ["http://h/?a", "search", "", "http://h/"],
  ["http://h/", "search", "?x y'", "http://h/?x%20y%27"],
  ["http://h/", "search", "a#b", "http://h/?a%23b"],
  ["http://h/", "search", "??", "http://h/??"],
  ["http://h/#a", "hash", "", "http://h/"],
  ["http://h/", "hash", "#x y", "http://h/#x%20y"],
  ["http://h/", "hash", "##", "http://h/##"],
  ["javascript:x", "hash", "y", "javascript:x#y"],
  ["http://h/", "href", "https://x/", "https://x/"],
];

test("setters", () => {
  for (const [href, name, value, expected] of setters) {
    const u = new URL(href);
    u[name] = value;
    assert.equal(u.href, expected, JSON.stringify([href, name, value]));
  }
  const u = new URL("http://h/");
  assert.throws(() => { u.href = "bad"; }, TypeError);
  assert.equal(u.href, "http://h/");
  assert.throws(() => { "use strict"; u.origin = "x"; }, TypeError);
});

test("searchParams follow the URL and the URL follows them", () => {
  const u = new URL("http://h/?a=1&b=2#f");
  const p = u.searchParams;
  assert.equal(u.searchParams, p);
  p.append("c", "x y");
  assert.equal(u.href, "http://h/?a=1&b=2&c=x+y#f");
  u.search = "?z=9";
  assert.deepEqual([...p], [["z", "9"]]);
  p.delete("z");
  assert.equal(u.href, "http://h/#f");
  u.href = "http://i/?q=1";
  assert.equal(p.get("q"), "1");
  u.search = "";
  assert.equal(p.size, 0);
  p.set("k", "é&=");
  assert.equal(u.search, "?k=%C3%A9%26%3D");
});

test("arguments", () => {
  assert.throws(() => new URL(), TypeError);
  assert.throws(() => new URL("x", "bad"), TypeError);
  assert.throws(() => new URL("http://a/", "bad"), TypeError);
  assert.equal(new URL("x", { toString: () => "http://a/b/" }).href, "http://a/b/x");
  assert.equal(new URL("x", new URL("http://a/b/")).href, "http://a/b/x");
  assert.throws(() => new URL("http://a/", null), TypeError);
  assert.equal(new URL("http://a/", undefined).href, "http://a/");
  assert.throws(() => URL.canParse(), TypeError);
  assert.ok(URL.parse("http://a/") instanceof URL);
  assert.throws(() => URL.prototype.toString.call({}), TypeError);
});

test("arguments are converted once, and all of them first", () => {
  const log = [];
  const text = (name, value) => ({ toString() { log.push(name); return value; } });
  assert.throws(() => new URL(text("url", "nothing"), text("base", "")), TypeError);
  assert.equal(URL.parse(text("url", "http://["), text("base", "x:")), null);
  assert.equal(URL.canParse(text("url", "a"), text("base", "http://x")), true);
  assert.deepEqual(log, ["url", "base", "url", "base", "url", "base"]);
});

test("what Unicode 16 and 17 map in domains", () => {
  const host = (text) => new URL(`http://${text}/`).host;
  const rows = [["\u2183\u04c0\u10a0\u10c5", "\u2184\u04cf\u2d00\u2d25"], ["\u2132\ua7cb\ua7d2\ua7d4\ua7dc", "\u214e\u0264\ua7d3\ua7d5\u019b"],
    ["\u{2f868}\u{2f874}\u{2f91f}\u{2f95f}\u{2f9bf}", "\u36fc\u5f53\u{243ab}\u7aee\u45d7"], ["\u{1ccd6}\u{1ccef}\u{1ccf0}\u{1ccf9}\ua7f1", "az09s"],
    ["\u{1ccf1}.\u{1ccf2}", "1.0.0.2"]];
  for (const [from, to] of rows) assert.equal(host(from), host(to), escape(from));
});
