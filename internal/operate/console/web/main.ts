// What pages do beyond links and forms: parts that change by themselves, lines as they come, and keys. Without this
// script all pages and actions work too. HTML in events is rendered by the server, which escapes the texts of others.

const most = 500; // lines of a tail

// Parts of the page are replaced when the server sends them. A link that has the focus keeps it. A page that nobody sees
// follows nothing: a browser has six connections to a console, for all its tabs together. The first event of a stream
// has all parts.
function follow(at: HTMLElement, path: string) {
  let source: EventSource | null = null, paused = false;
  const state = at.querySelector<HTMLElement>("[data-live-state]");
  const says = state?.querySelector<HTMLElement>("[role=status]"), pause = state?.querySelector("button");
  const say = (text: string) => { if (says && says.textContent !== text) says.textContent = text; };
  if (state) state.hidden = false;
  pause?.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    say(paused ? `This page stays as it was at ${new Date().toISOString().slice(11, 19)} UTC.` : "");
    look();
  });
  at.addEventListener("live", (e) => { if (!paused) say((e as CustomEvent<string>).detail); });
  at.addEventListener("over", () => { if (state) state.hidden = true; });
  const look = () => {
    if (document.hidden || paused) {
      source?.close();
      source = null;
    } else if (!source) {
      source = listen(at, path);
    }
  };
  document.addEventListener("visibilitychange", look);
  look();
}

function listen(at: HTMLElement, path: string): EventSource {
  const source = new EventSource(path);
  const live = (text: string) => at.dispatchEvent(new CustomEvent("live", { detail: text }));
  source.addEventListener("parts", (e) => {
    const parts: Record<string, string> = JSON.parse(e.data);
    live("");
    for (const [id, html] of Object.entries(parts)) {
      const part = document.getElementById(id);
      if (!part || !at.contains(part) || selected(part)) continue;
      const scrolled = [...part.querySelectorAll(".scroll")].map((s) => s.scrollLeft);
      const focused = document.activeElement instanceof HTMLAnchorElement && part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      part.innerHTML = html;
      dress(part);
      part.querySelectorAll(".scroll").forEach((s, i) => { s.scrollLeft = scrolled[i] ?? 0; });
      if (focused !== null) part.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
    hover();
    at.dataset.updates = String(Number(at.dataset.updates ?? 0) + 1);
  });
  source.addEventListener("ended", () => {
    source.close();
    location.reload(); // actions of what goes on are gone
  });
  source.addEventListener("over", () => { source.close(); at.dispatchEvent(new Event("over")); });
  source.addEventListener("failed", (e) => live(`This page is not live: ${JSON.parse(e.data)}`));
  source.addEventListener("error", () => live(source.readyState === EventSource.CLOSED ?
    "This page is not live: load it again." : "The connection is lost: what is below is old. It is tried again."));
  return source;
}

// selected reports whether a person has marked text of a part, to copy it.
function selected(part: HTMLElement) {
  const s = getSelection();
  return s !== null && !s.isCollapsed && part.contains(s.anchorNode);
}

// dress adds to a part what needs the script: times that go on, and the names of columns where a row is a block.
function dress(part: ParentNode) {
  for (const time of part.querySelectorAll<HTMLTimeElement>("time")) {
    const at = new Date(time.dateTime), zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    if (zone !== "UTC") time.title += `\n${at.toLocaleString("sv")} ${zone}`;
  }
  for (const table of part.querySelectorAll<HTMLTableElement>(".scroll table:has(thead)")) {
    const heads = [...table.tHead!.rows[0].cells].map((c) => c.textContent!.replace(/[↑↓]/, "").trim());
    for (const row of table.tBodies[0].rows) {
      let column = 0;
      for (const cell of row.cells) {
        const shown = cell.textContent!.trim();
        if (shown === "-" || shown === "" && !cell.children.length) cell.dataset.none = "";
        else if (!(column === 0 && cell.matches(".id")) && !cell.querySelector("input, button, .name")) cell.dataset.label = heads[column];
        column += cell.colSpan;
      }
    }
    table.dataset.stacked = "";
  }
}
dress(document);

// Times say how long ago they were, also when the page has been open for a while.
setInterval(() => {
  for (const time of document.querySelectorAll<HTMLTimeElement>("time[data-ago]")) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000, text = seconds < 0 ? `in ${coarse(-seconds)}` : `${coarse(seconds)} ago`;
    if (time.textContent !== text) time.textContent = text;
  }
}, 2000);

function coarse(seconds: number) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86400)} days`;
}

// What people take along has a button that copies it: an attribute of its element, or the text of a block.
for (const at of document.querySelectorAll<HTMLElement>("[data-what]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "small copy";
  const says = at.dataset.what === "name" ? "Copy name" : "Copy";
  button.textContent = says;
  button.ariaLabel = `Copy ${at.dataset.what}`;
  button.addEventListener("click", async () => {
    const done = await copy(at.dataset.copy ?? at.textContent!);
    button.textContent = done ? "Copied" : "Mark it and copy it";
    setTimeout(() => { button.textContent = says; }, 2000);
  });
  if (at.dataset.copy !== undefined) at.append(" ", button);
  else at.before(button);
}

// copy says whether the text is in the clipboard. Browsers have navigator.clipboard only with TLS and on this machine.
async function copy(text: string) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

// The value of a line below the pointer: in words above it, and as a mark. Lines are replaced while the pointer rests.
let pointer: { x: number; y: number } | null = null;
document.addEventListener("pointermove", (e) => { pointer = { x: e.clientX, y: e.clientY }; hover(); });
document.addEventListener("pointerleave", () => { pointer = null; hover(); });

function hover() {
  const below = pointer && document.elementFromPoint(pointer.x, pointer.y)?.closest<HTMLElement>(".spark");
  for (const chart of document.querySelectorAll<HTMLElement>(".spark")) {
    const mark = chart.querySelector<HTMLElement>(".plot i")!, says = chart.querySelector("output")!;
    const values = chart.dataset.values!.split("|"), points = Number(chart.dataset.points) - 1;
    const plot = chart.querySelector(".plot")!.getBoundingClientRect();
    const at = chart === below ? points - Math.round((pointer!.x - plot.left) / plot.width * points) : -1; // points before now
    const value = at < 0 ? undefined : values[values.length - 1 - at];
    chart.toggleAttribute("data-hover", value !== undefined);
    says.textContent = value === undefined ? "" : `${value}, ${at === 0 ? "now" : `${coarse(at * Number(chart.dataset.every))} ago`}`;
    mark.style.left = `${(points - at) / points * 100}%`;
  }
}

// Lines are added below. The list stays at its end, unless the person has scrolled up.
function tail(list: HTMLElement, path: string) {
  const state = document.querySelector<HTMLElement>("[data-tail-state]");
  const source = new EventSource(path), bar = list.parentElement!.querySelector<HTMLElement>(".live")!;
  const pause = bar.querySelector<HTMLButtonElement>("[data-tail-pause]")!;
  let paused = false, kept: string[] = [];
  const add = (html: string) => {
    if (paused) { kept.push(html); kept = kept.slice(-most); pause.textContent = `Go on (${kept.length} new)`; return; }
    const below = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    list.insertAdjacentHTML("beforeend", html);
    while (list.childElementCount > most) list.firstElementChild!.remove();
    if (below) list.scrollTop = list.scrollHeight;
    bar.hidden = false;
  };
  source.addEventListener("line", (e) => add(JSON.parse(e.data)));
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    const missed = paused ? [] : kept;
    if (!paused) kept = [];
    missed.forEach(add);
  });
  bar.querySelector("[data-tail-clear]")!.addEventListener("click", () => { list.replaceChildren(); kept = []; });
  source.addEventListener("failed", (e) => { if (state) state.textContent = JSON.parse(e.data); });
  source.addEventListener("error", () => { if (state && source.readyState === EventSource.CLOSED) state.textContent = "The lines have ended. Load the page again to follow them."; });
}

for (const at of document.querySelectorAll<HTMLElement>("[data-live]")) follow(at, at.dataset.live!);
for (const list of document.querySelectorAll<HTMLElement>("[data-tail]")) tail(list, list.dataset.tail!);

// A link of `pinwheel console` has the token behind #, where neither a server nor a log sees it.
const login = document.querySelector<HTMLFormElement>("form[action='/login']");
if (login && location.hash.length > 1) {
  login.querySelector<HTMLInputElement>("input[name=token]")!.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname + location.search);
  login.submit();
}

// Parts that take longer than their page come after it.
for (const part of document.querySelectorAll<HTMLElement>("[data-load]")) {
  fetch(part.dataset.load!).then(async (r) => { if (r.ok) part.innerHTML = await r.text(); part.removeAttribute("data-load"); dress(part); });
}

// Letters that are chosen one by one.
for (const form of document.querySelectorAll<HTMLFormElement>("[data-choose]")) {
  const boxes = [...form.querySelectorAll<HTMLInputElement>("input[name=ids]")];
  const all = form.querySelector<HTMLInputElement>("[data-all]");
  const update = () => {
    const n = boxes.filter((b) => b.checked).length;
    for (const button of form.querySelectorAll<HTMLButtonElement>("[data-chosen]")) button.disabled = n === 0;
    if (all) { all.checked = n > 0 && n === boxes.length; all.indeterminate = n > 0 && n < boxes.length; }
  };
  form.addEventListener("change", (e) => {
    if (e.target === all) for (const b of boxes) b.checked = all!.checked;
    update();
  });
  update();
}

// A field with JSON says whether it is.
for (const field of document.querySelectorAll<HTMLTextAreaElement>("[data-json]")) {
  const state = field.closest("form")!.querySelector<HTMLElement>("[data-json-state]");
  const wasJSON = isJSON(field.value);
  field.addEventListener("input", () => {
    if (state && wasJSON) state.textContent = isJSON(field.value) ? "" : "This is no JSON any more.";
  });
}

function isJSON(text: string) {
  try { JSON.parse(text); return true; } catch { return false; }
}

// Filters that say nothing are not in the URL.
for (const form of document.querySelectorAll<HTMLFormElement>("form.filters")) {
  form.addEventListener("submit", () => {
    for (const field of form.querySelectorAll<HTMLInputElement | HTMLSelectElement>("input, select")) if (field.value === "") field.disabled = true;
    setTimeout(() => { for (const field of form.querySelectorAll<HTMLInputElement>("input, select")) field.disabled = false; });
  });
}

// Keys. None of them works while a field has the focus.
const help = document.querySelector<HTMLDialogElement>("#help")!;
document.querySelector("[data-help]")?.addEventListener("click", () => help.showModal());
let went = false; // g was pressed
document.addEventListener("keydown", (e) => {
  const at = e.target as HTMLElement;
  if (e.ctrlKey || e.metaKey || e.altKey || at.matches("input:not([type=checkbox]), select, textarea") || help.open) return;
  if (went) {
    went = false;
    const link = document.querySelector<HTMLAnchorElement>(`[data-key="${CSS.escape(e.key)}"]`);
    if (link) { e.preventDefault(); link.click(); }
    return;
  }
  switch (e.key) {
    case "g": went = true; setTimeout(() => { went = false; }, 1500); break;
    case "?": help.showModal(); break;
    case "/": {
      const field = document.querySelector<HTMLInputElement>("[data-filter]");
      if (field) { e.preventDefault(); field.focus(); field.select(); }
      break;
    }
    case "j": move(1); break;
    case "k": move(-1); break;
    case "Enter":
      if (at === document.body || at.id === "main") document.querySelector<HTMLAnchorElement>("tr[data-here] a")?.click();
      break;
    default: return;
  }
});

// move marks the next row of the list, and goes to its link: a reader of the screen says it, and Enter opens it.
function move(by: number) {
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("table[data-rows] tbody tr")];
  const at = rows.findIndex((r) => r.hasAttribute("data-here"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (!next) return;
  rows[at]?.removeAttribute("data-here");
  next.setAttribute("data-here", "");
  next.scrollIntoView({ block: "nearest" });
  next.querySelector<HTMLAnchorElement>("a")?.focus({ preventScroll: true });
}
