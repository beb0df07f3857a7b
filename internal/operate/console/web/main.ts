// What pages do beyond links and forms: parts that change by themselves, lines as they come, and keys. Without this
// script all pages and actions work too. HTML in events is rendered by the server, which escapes the texts of others.

const most = 500; // lines of a tail

// Parts of the page are replaced when the server sends them. A link that has the focus keeps it. A page that nobody sees
// follows nothing: a browser has six connections to a console, for all its tabs together. The first event of a stream
// has all parts.
function follow(at: HTMLElement, path: string) {
  let source: EventSource | null = null;
  const look = () => {
    if (document.hidden) {
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
  source.addEventListener("parts", (e) => {
    const parts: Record<string, string> = JSON.parse(e.data);
    for (const [id, html] of Object.entries(parts)) {
      const part = document.getElementById(id);
      if (!part || !at.contains(part)) continue;
      const focused = document.activeElement instanceof HTMLAnchorElement && part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      part.innerHTML = html;
      if (focused !== null) part.querySelector<HTMLElement>(`a[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
    hover();
    at.dataset.updates = String(Number(at.dataset.updates ?? 0) + 1);
  });
  source.addEventListener("ended", () => {
    source.close();
    location.reload(); // actions of what goes on are gone
  });
  source.addEventListener("over", () => source.close());
  source.addEventListener("failed", (e) => { at.dataset.failed = JSON.parse(e.data); });
  return source;
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
    says.textContent = value === undefined ? "" : `${value}, ${at === 0 ? "now" : `${at * Number(chart.dataset.every)} s ago`}`;
    mark.style.left = `${(points - at) / points * 100}%`;
  }
}

// Lines are added below. The list stays at its end, unless the person has scrolled up.
function tail(list: HTMLElement, path: string) {
  const state = document.querySelector<HTMLElement>("[data-tail-state]");
  const source = new EventSource(path);
  source.addEventListener("line", (e) => {
    const below = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    list.insertAdjacentHTML("beforeend", JSON.parse(e.data));
    while (list.childElementCount > most) list.firstElementChild!.remove();
    if (below) list.scrollTop = list.scrollHeight;
  });
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
  fetch(part.dataset.load!).then(async (r) => { if (r.ok) part.innerHTML = await r.text(); part.removeAttribute("data-load"); });
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

// move marks the next row of the list.
function move(by: number) {
  const rows = [...document.querySelectorAll<HTMLTableRowElement>("table[data-rows] tbody tr")];
  const at = rows.findIndex((r) => r.hasAttribute("data-here"));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  if (!next) return;
  rows[at]?.removeAttribute("data-here");
  next.setAttribute("data-here", "");
  next.scrollIntoView({ block: "nearest" });
}
