// What HTMLRewriter makes of pages, for Cloudflare's workerd in miniflare and for Pinwheel. A case returns the page that
// came out, and what its handlers saw.

async function run(page, build, init) {
  const seen = [];
  try {
    const rewriter = new HTMLRewriter();
    build(rewriter, (...what) => { seen.push(what.length === 1 ? what[0] : what); });
    const out = await rewriter.transform(new Response(page, init)).text();
    return seen.length > 0 ? [out, seen] : out;
  } catch (e) {
    return [e instanceof DOMException ? e.name : e.constructor.name, seen];
  }
}

const refused = (call) => {
  try {
    const value = call();
    return value === undefined || typeof value === "object" && value !== null ? "ok" : value;
  } catch (e) {
    return e.constructor.name;
  }
};

// nodes is a handler that sees whole text nodes: how these are cut is each runtime's own.
const nodes = (see) => {
  let all = "";
  return (t) => {
    all += t.text;
    if (!t.lastInTextNode) return;
    see(all);
    all = "";
  };
};

const H = { html: true };
const plain = "<!DOCTYPE html><html><head><title>A &amp; B</title></head><body class='x y' id=main>" +
  "<p>one<br>two</p><!-- c --><ul><li>1<li>2<li data-k=\"v\">3</ul><img src=a.png><DIV Class=Big>t</DIV></body></html>";

// marks has one element handler that marks what it matches.
const marks = (selector) => (r) => r.on(selector, { element(e) { e.setAttribute("m", ""); } });
const tree = `<div id="a" class="one two"><p class="one">1</p><p>2</p><span lang="en-US">3</span><div><p title="Hello World">4</p><p>5</p></div></div><p class="TWO" data-x="a b c">6</p><section><b></b><i></i><b id="b2"></b><i></i><b></b></section>`;

const selectors = ["*", "p", "P", ".one", "#a", "div p", "div > p", "div div p", "div>div>p", "[class]", "[class=one]", "[class='one']",
  "[class~=two]", "[lang|=en]", "[title^=Hello]", "[title$=World]", "[title*='lo W']", "[title=\"hello world\" i]", "[class=two i]",
  "[data-x~=b]", "p:nth-child(2)", "p:nth-child(2n+1)", "p:nth-child(odd)", "p:nth-child(even)", "p:nth-child(-n+2)", "p:first-child",
  "b:nth-of-type(2)", "i:nth-of-type(even)", "b:first-of-type", "p:not(.one)", "p:not([title])", "*:not(div)", "p.one, span, #b2",
  "div p.one", "div.one.two > p.one", "section > b:nth-child(3)", "[id]", "div#a", "b:nth-of-type(-n+2)", ".two.one", "p, p", "p:not(:first-child)",
  "section *", "body p", "[title='Hello World' s]", "[LANG]", "[class~='']", "[title^='']", "p:nth-child(n+2)", ":not(p)", "div > div p:nth-child(2)"];

const bad = ["", " ", "p >", "> p", "p + p", "p ~ p", "p::before", "p:hover", "p:nth-last-child(1)", "p:last-child", "p:only-child", "[", "[a", "[a=", "[a=b",
  "p,", ",p", "..a", "#", ".", "p:nth-child(x)", "p:nth-child()", "p:not()", "p:not(p > a)", "svg|a", "*|p", "|p", "p:is(a)", "p:not(a, b)", ":root", ":empty",
  "p:has(a)", "1p", "#1", ".1a", "p:lang(en)", "[a='b]", "p)", "p(", "!", "p!", "p:nth-of-type(2)", "p /* c */", "p\\:a", "[a|b]", "[*|a]", "[a=b x]", "p:not", "p:nth-child", "p:nth-child(2 of a)", "p:not(:not(a))",
  "[a=1]", "[1]", "a b c d", "--a", "p||a", "p:NOT(a)", "p:First-Child", "p:nth-child( 2n + 1 )", "p:nth-child(+3)", "p:nth-child(2n+)", "é", ".é", "p > > a"];

const text = (e, name = "t") => e.setInnerContent(name);
const cases = {
  "untouched": () => run(plain, () => {}),
  "untouched by a match": () => run(plain, (r, see) => r.on("*", { element(e) { see(e.tagName); } })),
  "names are lowercase": () => run("<DIV ID=A Class=b></DIV>", (r, see) => r.on("div", { element(e) { see(e.tagName, [...e.attributes], e.getAttribute("ID"), e.hasAttribute("cLASS"), e.getAttribute("no"), e.namespaceURI, e.removed); } })),
  "set attribute": () => run(`<a href='x' id=q disabled>t</a>`, (r) => r.on("a", { element(e) { e.setAttribute("href", `a"b'&<>`); e.setAttribute("new", "1"); } })),
  "set attribute in place": () => run(`<a A=1 b c='2' d = "3">t</a>`, (r) => r.on("a", { element(e) { e.setAttribute("C", "9"); } })),
  "set attribute twice": () => run(`<a x=1 x=2>t</a>`, (r, see) => r.on("a", { element(e) { see([...e.attributes]); e.setAttribute("x", "9"); see(e.getAttribute("x")); } })),
  "set attribute of upper case": () => run(`<a A=1 BC='2' d>t</a>`, (r, see) => r.on("a", { element(e) { e.setAttribute("a", "9"); e.setAttribute("D", "8"); e.setAttribute("Ef", "7"); see([...e.attributes]); } })),
  "set and remove": () => run(`<a b=1>t</a>`, (r) => r.on("a", { element(e) { e.setAttribute("b", "2"); e.removeAttribute("b"); e.setAttribute("b", "3"); } })),
  "remove attribute": () => run(`<a A=1 b c='2'>t</a>`, (r) => r.on("a", { element(e) { e.removeAttribute("a"); e.removeAttribute("nope"); e.removeAttribute("C"); } })),
  "remove no attribute": () => run(`<a  A = 1 >t</a>`, (r) => r.on("a", { element(e) { e.removeAttribute("nope"); } })),
  "remove all attributes": () => run(`<a b>t</a>`, (r) => r.on("a", { element(e) { e.removeAttribute("b"); } })),
  "remove double attribute": () => run(`<a b=1 b=2 c>t</a>`, (r) => r.on("a", { element(e) { e.removeAttribute("b"); } })),
  "bad attribute names": () => run(`<a>t</a>`, (r, see) => r.on("a", { element(e) { for (const n of ["", "a b", "a=b", "a>b", "a/b", "a\"b", "a'b", "a<b", "a\tb", "ä", "a\0b"]) see(refused(() => e.setAttribute(n, "1"))); } })),
  "entities stay": () => run(`<a t="&amp;&quot;x">&lt;</a>`, (r, see) => r.on("a", { element(e) { see(e.getAttribute("t")); e.setAttribute("u", "&amp;"); }, text(t) { see(t.text, t.lastInTextNode); } })),
  "self closing": () => run(`<a x=1/><br/><br /><p/>t</p>`, (r, see) => r.on("*", { element(e) { see(e.getAttribute("x")); e.setAttribute("m", "1"); e.after("A"); e.append("I"); } })),
  "tag name": () => run(`<a x=1>t</a>`, (r, see) => r.on("a", { element(e) { e.tagName = "Bold"; see(e.tagName); } })),
  "tag name with an end tag": () => run(`<a x=1>t<a>u</a></a>`, (r) => r.on("a", { element(e) { e.tagName = "b"; } })),
  "bad tag names": () => run(`<a>t</a>`, (r, see) => r.on("a", { element(e) { for (const n of ["", "1", "a b", "a>", "a/", "é", "aé", "a\0", "A", "a\"", "a="]) see(refused(() => { e.tagName = n; })); } })),
  "around": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.before("<b>"); e.after("<a>"); e.prepend("<p>"); e.append("<e>"); e.before("2", H); e.after("<2>", H); e.prepend("3"); e.append("4"); } })),
  "replace": () => run(`<div><p>t<b>u</b></p>z</div>`, (r, see) => r.on("p", { element(e) { see(e.removed); e.replace("<i>r</i>", H); see(e.removed); } })),
  "replace twice": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.replace("1"); e.replace("2"); } })),
  "replace and around": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.before("b"); e.replace("r"); e.after("a"); e.prepend("p"); e.append("e"); } })),
  "remove": () => run(`<div><p>t<b>u</b></p>z</div>`, (r, see) => r.on("p", { element(e) { e.remove(); see(e.removed); } }).on("b", { element(e) { see(e.removed); e.before("B"); e.append("C"); } })),
  "remove and around": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.before("b"); e.after("a"); e.prepend("p"); e.append("e"); e.remove(); } })),
  "remove then inner": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.remove(); e.setInnerContent("i"); } })),
  "remove and keep": () => run(`<p>t<b>u</b></p>`, (r, see) => r.on("p", { element(e) { e.removeAndKeepContent(); see(e.removed); } })),
  "remove and keep with all": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.before("b"); e.after("a"); e.prepend("p"); e.append("e"); e.removeAndKeepContent(); } })),
  "inner": () => run(`<p>t<b>u</b></p>`, (r, see) => r.on("p", { element(e) { e.setInnerContent("<i>"); see(e.removed); } }).on("b", { element(e) { see(e.removed); } })),
  "inner and around": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.prepend("p"); e.append("e"); e.setInnerContent("i"); e.prepend("P"); e.append("E"); } })),
  "inner then inner": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.setInnerContent("i"); e.setInnerContent("j"); } })),
  "inner of void": () => run(`<br>t<img>`, (r) => r.on("*", { element(e) { e.setInnerContent("i"); e.append("a"); e.prepend("p"); e.after("z"); } })),
  "remove void": () => run(`a<br>t`, (r) => r.on("br", { element(e) { e.remove(); } })),
  "replace void": () => run(`a<br>t`, (r) => r.on("br", { element(e) { e.replace("R"); e.after("z"); } })),
  "keep void": () => run(`a<br>t`, (r) => r.on("br", { element(e) { e.removeAndKeepContent(); } })),
  "handlers inside what is removed": () => run(`<p>a<!--c--><b x>u</b></p>z`, (r, see) => r.on("p", { element(e) { e.remove(); e.onEndTag((t) => { see("end", t.name); t.after("E"); }); } }).on("b", { element(e) { see("b"); e.onEndTag((t) => { see("/b"); t.before("!"); }); }, text(t) { see(t.text, t.removed); t.after("?"); } }).on("p", { text(t) { see(t.text, t.removed); }, comments(c) { see(c.text, c.removed); c.replace("d"); } })),
  "nested removal": () => run(`<div><div>a</div>b</div>c`, (r) => r.on("div", { element(e) { e.remove(); } })),
  "removed twice": () => run(`<div><p>a</p>b</div>c`, (r) => r.on("div", { element(e) { e.remove(); } }).on("p", { element(e) { e.replace("r"); e.after("q"); } })),
  "two handlers": () => run(`<p>t</p>`, (r, see) => r.on("p", { element(e) { e.before("1"); e.after("1"); e.setAttribute("a", "1"); e.append("x"); e.prepend("x"); } }).on("p", { element(e) { see(e.getAttribute("a")); e.before("2"); e.after("2"); e.append("y"); e.prepend("y"); } })),
  "two handlers, one removes": () => run(`<p>t</p>`, (r, see) => r.on("p", { element(e) { e.remove(); } }).on("p", { element(e) { see(e.removed); e.after("2"); } })),
  "once for a list": () => run(`<p class=a>t</p>`, (r, see) => r.on("p, .a", { element() { see("e"); }, text(t) { see(t.text); } })),
  "on end tag": () => run(`<p>t</p>`, (r, see) => r.on("p", { element(e) { e.onEndTag((t) => { see(t.name); t.before("<b>"); t.after("a", H); }); } })),
  "on end tag with all": () => run(`<p>t</p>`, (r) => r.on("p", { element(e) { e.append("1"); e.after("2"); e.onEndTag((t) => { t.before("b"); t.after("a"); }); e.append("3"); e.after("4"); } })),
  "on end tag twice": () => run(`<p>t</p>`, (r, see) => r.on("p", { element(e) { e.onEndTag(() => { see(1); }); e.onEndTag(() => { see(2); }); } })),
  "on end tag of two handlers": () => run(`<p>t</p>`, (r, see) => r.on("p", { element(e) { e.onEndTag(() => { see(1); }); } }).on("p", { element(e) { e.onEndTag(() => { see(2); }); } })),
  "on end tag removes": () => run(`<p>t</p>z`, (r) => r.on("p", { element(e) { e.onEndTag((t) => { t.remove(); t.after("a"); }); } })),
  "on end tag renames": () => run(`<p>t</p  x>z`, (r, see) => r.on("p", { element(e) { e.onEndTag((t) => { t.name = "Q"; see(t.name); }); } })),
  "on end tag in upper case": () => run(`<P>t</P >z`, (r, see) => r.on("p", { element(e) { e.onEndTag((t) => { see(t.name); }); } })),
  "on end tag of void": () => run(`<br>z`, (r, see) => r.on("br", { element(e) { see(refused(() => e.onEndTag(() => { see("no"); }))); } })),
  "on end tag that is missing": () => run(`<p>t`, (r, see) => r.on("p", { element(e) { e.append("a"); e.after("b"); e.onEndTag(() => { see("no"); }); } })),
  "on end tag that is implied": () => run(`<ul><li>1<li>2</ul>z`, (r, see) => r.on("li", { element(e) { e.append("a"); e.after("b"); e.onEndTag((t) => { see(t.name); }); } })),
  "implied and the parent": () => run(`<ul><li>1<li>2</ul>z`, (r, see) => r.on("*", { element(e) { const { tagName } = e; e.append(`(${tagName})`); e.after(`[${tagName}]`); e.onEndTag((t) => { see(tagName, t.name); t.before("{"); }); } })),
  "implied and removed": () => run(`<ul><li>1<li>2</ul>z`, (r) => r.on("li", { element(e) { e.remove(); } })),
  "implied and kept": () => run(`<ul><li>1<li>2</ul>z`, (r) => r.on("li", { element(e) { e.removeAndKeepContent(); } })),
  "implied and renamed": () => run(`<ul><li>1<li>2</ul>z`, (r) => r.on("li", { element(e) { e.tagName = "dd"; } })),
  "implied and inner": () => run(`<ul><li>1<li>2</ul>z`, (r) => r.on("li", { element(e) { e.setInnerContent("n"); } })),
  "implied and nested": () => run(`<p>a<p>b</div>c</p>d</p>e`, (r, see) => r.on("p", { element(e) { e.setAttribute("m", "1"); e.onEndTag((t) => { see(t.name); t.before("!"); }); } })),
  "wrong end tags": () => run(`<b><i>t</b></i></p>z`, (r, see) => r.on("*", { element(e) { e.onEndTag((t) => { see(e === undefined, t.name); t.after("."); }); } })),
  "removed at the end": () => run(`a<p>t<b>u`, (r) => r.on("p", { element(e) { e.remove(); e.before("x"); e.after("y"); } })),
  "text": () => run(`<p>one<b>two</b>three</p>`, (r, see) => r.on("p", { text(t) { see(t.text, t.lastInTextNode, t.removed); } })),
  "text replaced": () => run(`<p>one</p>`, (r) => r.on("p", { text(t) { if (t.text) t.replace("<b>", H); } })),
  "text escaped": () => run(`<p>one</p>`, (r) => r.on("p", { text(t) { if (t.text) t.replace(`<b>&amp;"'`); } })),
  "text removed": () => run(`<p>one</p>`, (r, see) => r.on("p", { text(t) { t.remove(); see(t.removed); } })),
  "text around": () => run(`<p>one</p>`, (r) => r.on("p", { text(t) { if (!t.text) { t.before("b"); t.after("a"); t.before("2"); t.after("2"); } } })),
  "text removed with around": () => run(`<p>one</p>`, (r) => r.on("p", { text(t) { if (t.text) { t.before("b"); t.remove(); t.after("a"); } } })),
  "text replaced twice": () => run(`<p>one</p>`, (r) => r.on("p", { text(t) { if (t.text) { t.replace("1"); t.replace("2"); } } })),
  "text of raw elements": () => run(`<script>if (a<b) "</p>" <!-- x</script><style>a>b{}</style><textarea><b>&lt;</textarea><title><i></title>`, (r, see) => r.on("*", { text: nodes(see), element(e) { see(e.tagName); }, comments(c) { see(c.text); } })),
  "text of document": () => run(`a<p>b</p><!--c-->d`, (r, see) => r.onDocument({ text(t) { see(t.text, t.lastInTextNode); }, comments(c) { see(c.text); } })),
  "text between": () => run(`a<p>b</p>\n<i> </i>`, (r, see) => r.onDocument({ text(t) { see(t.text, t.lastInTextNode); } })),
  "text of both": () => run(`<p>b</p>`, (r, see) => r.onDocument({ text(t) { see("doc", t.text); t.before("1"); } }).on("p", { text(t) { see("p", t.text); t.before("2"); } })),
  "text with entities": () => run(`<p>a&amp;b &#65; &nope;</p>`, (r, see) => r.on("p", { text(t) { see(t.text); } })),
  "text that looks like tags": () => run(`<p>a < b <3 </ d <></p>`, (r, see) => r.on("p", { text: nodes(see), comments(c) { see(c.text); } })),
  "text in an unclosed tag": () => run(`<p>a<b x="`, (r, see) => r.on("*", { element(e) { see(e.tagName); }, text(t) { see(t.text, t.lastInTextNode); } })),
  "unicode": () => run(`<p title="日本">né𝄞e</p>`, (r, see) => r.on("p", { element(e) { see(e.getAttribute("title")); e.setAttribute("ü", "ß"); }, text(t) { see(t.text); if (t.text) t.after("€"); } })),
  "comment": () => run(`a<!-- c --><p><!--d--></p>`, (r, see) => r.onDocument({ comments(c) { see(c.text, c.removed); } })),
  "comment set": () => run(`<!-- c -->`, (r, see) => r.onDocument({ comments(c) { c.text = "new"; see(c.text); } })),
  "comment set badly": () => run(`<!-- c -->`, (r, see) => r.onDocument({ comments(c) { see(refused(() => { c.text = "a-->b"; })); see(refused(() => { c.text = "a--!>b"; })); see(refused(() => { c.text = "-"; })); see(refused(() => { c.text = ">"; })); see(refused(() => { c.text = "->"; })); see(refused(() => { c.text = ""; })); } })),
  "comment all": () => run(`<!-- c -->`, (r) => r.onDocument({ comments(c) { c.before("<b"); c.after("<a"); c.before("2", H); c.after("2", H); } })),
  "comment replaced": () => run(`<!-- c -->`, (r) => r.onDocument({ comments(c) { c.replace("<r>"); c.before("b"); c.after("a"); } })),
  "comment removed": () => run(`1<!-- c -->2`, (r, see) => r.onDocument({ comments(c) { c.remove(); see(c.removed); } })),
  "comments of odd forms": () => run(`<!--><!---><!----><!--a--!><!-- - -- ---><!x><?php a ?></1><![CDATA[x]]><!--<!--a--><!-->b`, (r, see) => r.onDocument({ comments(c) { see(c.text); }, text: nodes(see) })),
  "comment at the end": () => run(`a<!-- c`, (r, see) => r.onDocument({ comments(c) { see(c.text); }, text(t) { see("t", t.text); } })),
  "comment of element": () => run(`<!--1--><p><!--2--><b><!--3--></b></p><!--4-->`, (r, see) => r.on("p", { comments(c) { see(c.text); } })),
  "comment text is kept": () => run(`<!-- c --!>`, (r, see) => r.onDocument({ comments(c) { see(c.text); c.before("b"); } })),
  "doctype": () => run(`<!DOCTYPE html><p>`, (r, see) => r.onDocument({ doctype(d) { see(d.name, d.publicId, d.systemId); } })),
  "doctype public": () => run(`<!doctype HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" 'http://www.w3.org/TR/html4/strict.dtd'>`, (r, see) => r.onDocument({ doctype(d) { see(d.name, d.publicId, d.systemId); } })),
  "doctype system": () => run(`<!DOCTYPE html SYSTEM "about:legacy-compat">`, (r, see) => r.onDocument({ doctype(d) { see(d.name, d.publicId, d.systemId); } })),
  "doctype empty": () => run(`<!DOCTYPE><!DOCTYPE >`, (r, see) => r.onDocument({ doctype(d) { see(d.name, d.publicId, d.systemId); } })),
  "doctype odd": () => run(`<!DOCTYPE a b c><!DOCTYPE a PUBLIC><!DOCTYPE a PUBLIC 'x><!DOCTYPE a PUBLIC "x""y">`, (r, see) => r.onDocument({ doctype(d) { see(d.name, d.publicId, d.systemId); } })),
  "end": () => run(`a`, (r, see) => r.onDocument({ end(e) { see(typeof e); e.append("<b>"); e.append("<i>", H); } })),
  "end of nothing": () => run(``, (r, see) => r.onDocument({ end(e) { see("end"); e.append("x"); } })),
  "end twice": () => run(`a`, (r) => r.onDocument({ end(e) { e.append("1"); } }).onDocument({ end(e) { e.append("2"); } })),
  "no body": async () => { const r = new Response(null, { status: 204 }); const out = new HTMLRewriter().on("p", {}).transform(r); return [out === r, out.status, out.body]; },
  "the response": async () => { const r = new Response("<p>", { status: 201, statusText: "Yes", headers: { "content-type": "text/html", "content-length": "3", etag: "x" } }); const out = new HTMLRewriter().transform(r); return [out === r, out.status, out.statusText, [...out.headers], r.bodyUsed, await out.text()]; },
  "of a used response": async () => { const r = new Response("<p>"); await r.text(); return refused(() => new HTMLRewriter().transform(r)); },
  "of what is no response": () => ["x", undefined, {}, null].map((x) => refused(() => new HTMLRewriter().transform(x))),
  "charset": async () => { const out = []; for (const c of ["utf-8", "UTF8", "us-ascii", "nope", "utf-16"]) out.push(await run("<p>a</p>", (r) => r.on("p", { element(e) { e.append("x"); } }), { headers: { "content-type": `text/html; charset=${c}` } })); return out; },
  "chained": () => { const r = new HTMLRewriter(); return [r.on("p", {}) === r, r.onDocument({}) === r]; },
  "used twice": async () => { const r = new HTMLRewriter().on("p", { element(e) { e.append("x"); } }); return [await r.transform(new Response("<p></p>")).text(), await r.transform(new Response("<p>2</p>")).text()]; },
  "handlers added later": async () => { const r = new HTMLRewriter().on("p", { element(e) { e.append("x"); } }); const out = r.transform(new Response("<p></p>")); r.on("p", { element(e) { e.append("y"); } }); return out.text(); },
  "rewriter in rewriter": async () => new HTMLRewriter().on("p", { element(e) { e.append("x"); } }).transform(new HTMLRewriter().on("p", { element(e) { e.append("<p></p>", H); } }).transform(new Response("<p></p>"))).text(),
  "this of handlers": () => run("<p>t</p>", (r, see) => r.on("p", new (class { n = 5; element() { see(this.n); } text(t) { if (t.text) see(this.n); } })())),
  "handlers are read at on": () => run("<p>t</p>", (r, see) => { const h = { element() { see(1); } }; r.on("p", h); h.element = () => { see(2); }; }),
  "async handlers": () => run("<p>t</p><p>u</p>", (r, see) => r.on("p", { async element(e) { await scheduler.wait(1); see("e"); e.setAttribute("a", "1"); }, async text(t) { await null; see(t.text); } })),
  "async end tag": () => run("<p>t</p>z", (r, see) => r.on("p", { element(e) { e.onEndTag(async (t) => { await scheduler.wait(1); t.after("a"); see("end"); }); } })),
  "async end": () => run("<p>", (r) => r.onDocument({ async end(e) { await scheduler.wait(1); e.append("a"); } })),
  "handlers that throw": () => run("<p>t</p>", (r) => r.on("p", { element() { throw new RangeError("mine"); } })),
  "handlers that reject": () => run("<p>t</p>", (r) => r.on("p", { async element() { throw new RangeError("mine"); } })),
  "text handlers that throw": () => run("<p>t</p>", (r, see) => r.on("p", { text() { see(1); throw new RangeError("mine"); } })),
  "end handlers that throw": () => run("<p>t</p>", (r) => r.onDocument({ end() { throw new RangeError("mine"); } })),
  "end tag handlers that throw": () => run("<p>t</p>", (r) => r.on("p", { element(e) { e.onEndTag(() => { throw new RangeError("mine"); }); } })),
  "tokens later": async () => { const kept = []; await run("<!DOCTYPE html><p a=1>t<!--c--></p>", (r) => r.on("p", { element(e) { kept.push(e); e.onEndTag((t) => { kept.push(t); }); }, text(t) { kept.push(t); }, comments(c) { kept.push(c); } }).onDocument({ doctype(d) { kept.push(d); }, end(e) { kept.push(e); } })); return kept.map((t) => [refused(() => t.tagName), refused(() => t.text), refused(() => t.name), refused(() => t.removed), refused(() => t.before?.("x")), refused(() => t.append?.("x")), refused(() => t.getAttribute?.("a"))]); },
  "attributes later": async () => { let kept; await run("<p a=1 b=2>", (r) => r.on("p", { element(e) { kept = e.attributes; kept.next(); } })); return refused(() => kept.next()); },
  "attributes as an iterator": () => run("<p a=1 b c='3'>", (r, see) => r.on("p", { element(e) { const it = e.attributes; see(typeof it.next, it[Symbol.iterator]() === it, it.next(), it.next(), it.next(), it.next(), e.attributes === e.attributes); } })),
  "what methods return": () => run("<p a=1>t<!--c--></p>", (r, see) => r.on("p", { element(e) { see(e.before("") === e, e.after("") === e, e.prepend("") === e, e.append("") === e, e.setAttribute("a", "2") === e, e.removeAttribute("a") === e, e.setInnerContent("") === e, e.removeAndKeepContent() === e, e.remove() === e, e.replace("") === e, e.onEndTag(() => {}) === undefined); }, text(t) { see(t.before("") === t, t.remove() === t); }, comments(c) { see(c.after("") === c, c.replace("") === c); } })),
  "contents of other kinds": () => run("<p>", (r, see) => r.on("p", { element(e) { for (const c of [5, null, undefined, true, {}, ["a", "b"]]) see(refused(() => e.before(c))); see(refused(() => e.before())); see(refused(() => e.before(Symbol()))); } })),
  "options of other kinds": () => run("<p>", (r, see) => r.on("p", { element(e) { for (const o of [{ html: 1 }, { html: "" }, null, undefined, {}, { html: undefined }, 5]) see(refused(() => e.before("<", o))); } })),
  "handlers of other kinds": () => [undefined, null, 5, {}, { element: 5 }, { element: null }, { element: undefined }, () => {}, { text: "x" }].map((h) => [refused(() => new HTMLRewriter().on("p", h)), refused(() => new HTMLRewriter().onDocument(h)), refused(() => new HTMLRewriter().onDocument({ end: h }))]),
  "without arguments": () => [refused(() => new HTMLRewriter().on()), refused(() => new HTMLRewriter().on("p")), refused(() => new HTMLRewriter().onDocument()), refused(() => new HTMLRewriter().transform()), refused(() => HTMLRewriter())],
  "svg": () => run(`<svg viewBox="0 0 1 1"><title><b>x</b></title><path d="M0"/><style><a></a></style><foreignObject><p>t</p></foreignObject></svg><title><b></title>`, (r, see) => r.on("*", { element(e) { see(e.tagName, e.namespaceURI); e.append("*"); } })),
  "svg and back": () => run(`<svg><g><div>a</div></g></svg><svg><desc><title><b></title></desc><![CDATA[<x>]]></svg>`, (r, see) => r.on("*", { element(e) { see(e.tagName, e.namespaceURI); } }).onDocument({ text: nodes(see), comments(c) { see("c", c.text); } })),
  "math": () => run(`<math><mi><b>x</b></mi><annotation-xml encoding="text/html"><p>y</p></annotation-xml><annotation-xml><p>z</p></math>`, (r, see) => r.on("*", { element(e) { see(e.tagName, e.namespaceURI); } })),
  "self closing in svg": () => run(`<svg><a/><b></b><a><c/></a></svg>`, (r, see) => r.on("a", { element(e) { e.append("I"); e.after("A"); e.setAttribute("m", "1"); } })),
  "empty svg": () => run(`<svg/><title><b></title><math/><p/>`, (r, see) => r.on("*", { element(e) { see(e.tagName, e.namespaceURI); } })),
  "many elements": () => run("<ul>" + "<li class='a'>x</li>".repeat(200) + "</ul>", (r) => r.on("li:nth-child(3n)", { element(e) { e.after("<hr>", H); } }).on("ul", { element(e) { e.append("end"); } })),
  "end is appended in what is removed": () => run("<p>a", (r) => r.on("p", { element(e) { e.remove(); } }).onDocument({ end(e) { e.append("z"); } })),
  "chunks": async () => { const out = []; for (const n of [1, 2, 3, 7, 50]) { const bytes = new TextEncoder().encode(plain); let at = 0; const body = new ReadableStream({ pull(c) { if (at >= bytes.length) c.close(); else { c.enqueue(bytes.slice(at, at + n)); at += n; } } }); out.push(await new HTMLRewriter().on("li", { element(e) { e.tagName = "dd"; } }).on("div", { text(t) { if (t.lastInTextNode) t.after("!"); } }).transform(new Response(body)).text()); } return out; },
  "a body that fails": async () => { let n = 0; const body = new ReadableStream({ pull(c) { if (n++ === 0) c.enqueue(new TextEncoder().encode("<p>")); else c.error(new RangeError("mine")); } }); try { return await new HTMLRewriter().on("p", {}).transform(new Response(body)).text(); } catch (e) { return e.constructor.name; } },
  "raw text ends": () => run(`<script>a</scriptx>b</SCRIPT >c<style></styl></style/>d<textarea></TEXTAREA\n>e<title>f</title x="y">g`, (r, see) => r.on("*", { element(e) { see(e.tagName); e.append("*"); } })),
  "script escapes": () => run(`<script><!-- <script> a </script> b --></script>c<script><!-- x </script>d<script><!--<script>--></script>e`, (r, see) => r.on("script", { element() { see("s"); }, text: nodes(see) })),
  "plaintext": () => run(`<p><plaintext>a</plaintext><b>`, (r, see) => r.on("*", { element(e) { see(e.tagName); } })),
  "raw elements": () => run(`<iframe><b></iframe><noscript><b></noscript><noembed><b></noembed><noframes><b></noframes><xmp><b></xmp><listing><b></listing>`, (r, see) => r.on("*", { element(e) { see(e.tagName); } })),
  "select": () => run(`<select><option>a<option>b</select>`, (r, see) => r.on("*", { element(e) { see(e.tagName); } })),
  "attributes of odd forms": () => run(`<a =x b = c d= 'e' f=g/h i="j"k l/m n=o/ "p q' <r s=t"u v='>' W>t</a>`, (r, see) => r.on("a", { element(e) { see([...e.attributes]); e.setAttribute("z", "1"); } })),
  "odd tags": () => run(`<a<b>c</a<b><a/b>d</a/b>< a></ a><1></1><é><a é=ä>`, (r, see) => r.on("*", { element(e) { see(e.tagName); } })),
  "null bytes": () => run(`<p a="\0b\0">\0</p><a\0b c\0d>`, (r, see) => r.on("*", { element(e) { see(e.tagName, [...e.attributes]); }, text(t) { see(t.text); } })),
  "line ends": () => run("<p\r\na=1\rb>c\r\nd</p\n>", (r, see) => r.on("p", { element(e) { see([...e.attributes]); e.setAttribute("z", "1"); }, text(t) { see(t.text); } })),
  "case of selectors": () => run(`<DIV ID=Foo CLASS=Bar TYPE=Baz data-A=B></DIV>`, (r, see) => { for (const s of ["#foo", "#Foo", ".bar", ".Bar", "[type=baz]", "[type=Baz]", "[DATA-a]", "[data-a=b]", "[data-a=b i]", "div[ID]"]) r.on(s, { element() { see(s); } }); }),
};
for (const s of selectors) cases[`selector ${s}`] = () => run(tree, marks(s));
for (const s of bad) cases[`on ${JSON.stringify(s)}`] = () => refused(() => new HTMLRewriter().on(s, {}));

export default {
  async fetch(request) {
    const only = new URL(request.url).searchParams.get("case");
    const answers = {};
    const names = Object.keys(cases);
    for (const name of only === null ? names : names.slice(+only, +only + 1)) answers[name] = (await cases[name]()) ?? null;
    return Response.json(answers);
  },
};
