// What a designer looks for on a page, as far as a browser can tell. The value is a list of faults, empty if there is
// none. The person sees only what is in the window and below it: a hidden element has no faults.
(() => {
  const faults = new Set();
  const name = (e) => `${e.tagName.toLowerCase()}${e.id ? `#${e.id}` : ""}${typeof e.className === "string" && e.className ? `.${e.className.trim().replaceAll(" ", ".")}` : ""} “${(e.value ?? e.textContent ?? "").trim().slice(0, 40)}”`;
  const fault = (what, e) => faults.add(`${what}: ${name(e)}`);
  const seen = (e) => e.checkVisibility({ visibilityProperty: true }) && e.getBoundingClientRect().width > 1 && !e.closest(".hidden, .skip:not(:focus)");
  const all = [...document.querySelectorAll("body *")].filter(seen);

  // Contrast (WCAG 2.2, 1.4.3 and 1.4.11).
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => top.slice(0, 3).map((v, i) => v * top[3] + below[i] * (1 - top[3])).concat(1);
  const ground = (e) => {
    if (!e) return rgba(getComputedStyle(document.documentElement).backgroundColor);
    const own = rgba(getComputedStyle(e).backgroundColor);
    return own[3] === 1 ? own : over(own, ground(e.parentElement));
  };
  const light = (c) => c.slice(0, 3).map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  for (const e of all) {
    if (e.closest("svg") || e.matches(":disabled")) continue;
    const style = getComputedStyle(e), size = parseFloat(style.fontSize);
    const least = size >= 24 || size >= 18.66 && style.fontWeight >= 700 ? 3 : 4.5;
    const texts = [];
    if ([...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim()) || e.matches("input, select, textarea")) texts.push(style.color);
    if (e.placeholder) texts.push(getComputedStyle(e, "::placeholder").color);
    for (const part of ["::before", "::after"]) {
      const made = getComputedStyle(e, part);
      if (!["none", "normal", '""'].includes(made.content)) texts.push(made.color);
    }
    for (const colour of texts) {
      const is = contrast(over(rgba(colour), ground(e)), ground(e));
      if (is < least) fault(`contrast ${is.toFixed(2)}`, e);
    }
    if (e.placeholder && getComputedStyle(e, "::placeholder").opacity < 1) fault("placeholder that shows through", e);
    if (e.matches("input:not([type=checkbox], [type=radio]), select, textarea")) {
      const is = contrast(rgba(style.borderTopColor), ground(e.parentElement));
      if (is < 3) fault(`contrast ${is.toFixed(2)} of the edge`, e);
    }
  }

  // What is cut off says that it is, and has the whole text where the pointer rests.
  for (const e of all) {
    const style = getComputedStyle(e), wide = e.scrollWidth > e.clientWidth + 1, high = e.scrollHeight > e.clientHeight + 1;
    if (e.matches("textarea, input, select, progress, html, body") || e.clientWidth === 0) continue;
    if (style.overflowX === "hidden" && wide || style.webkitLineClamp !== "none" && high) {
      if (style.textOverflow !== "ellipsis") fault("cut without an ellipsis", e);
      if (!e.closest("[title]") && !e.querySelector("[title]")) fault("cut without a title", e);
    }
    if (["auto", "scroll"].includes(style.overflowX) && wide) fault("columns that one does not see", e);
    if (["auto", "scroll"].includes(style.overflowY) && high && !e.matches("[tabindex], .side") && !e.querySelector("a, button")) fault("scrolls without the keyboard", e);
    if (e.matches("button, .button") && e.getClientRects().length === 1 && e.getBoundingClientRect().height > 44) fault("a button of two lines", e);
  }

  // Names, for those who do not see the page, and sizes, for those who touch it (2.5.8).
  const labelled = (e) => (e.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join(" ").trim();
  for (const e of all.filter((e) => e.matches("a[href], button, input, select, textarea, progress, [role=img], [tabindex='0'], nav, dialog"))) {
    const said = e.ariaLabel || labelled(e) || [...e.labels ?? []].map((l) => l.textContent.trim()).join(" ") || (e.matches("a, button") ? e.textContent.trim() : "");
    if (!said) fault("no name", e);
    if (e.tabIndex > 0) fault("a tab order of its own", e);
    const box = e.getBoundingClientRect(), inText = e.matches("a") && getComputedStyle(e).display === "inline";
    if (e.matches("a, button, input, select") && !inText && !e.matches(".name, [type=checkbox], [type=radio], .brand") && box.height < 24) fault(`${box.height} px high`, e);
  }
  const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
  for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) faults.add(`two elements have the id ${id}`);
  for (const e of document.querySelectorAll("[aria-labelledby]")) if (!labelled(e)) fault("labelled by nothing", e);
  for (const e of document.querySelectorAll("main th")) if (!e.textContent.trim() && !e.querySelector("input")) fault("a column without a name", e);
  if (document.querySelectorAll("h1").length !== 1) faults.add("not one h1");
  let level = 1;
  for (const e of [...document.querySelectorAll("main :is(h1, h2, h3, h4)")].filter((e) => e.checkVisibility())) {
    const now = +e.tagName[1];
    if (now > level + 1) fault(`a heading below h${level}`, e);
    level = now;
  }
  for (const e of document.querySelectorAll("time")) if (!/ UTC/.test(e.title)) fault("a time without a zone", e);
  return [...faults];
})()
