// The pages of the shop. Its base is that of the document, wherever the shop is.
const base = new URL(document.baseURI).pathname;
const main = document.querySelector("main");
let leave = () => {}; // ends what the page before it has open

const api = (path) => new URL(`api/${path}`, document.baseURI);

function element(name, text, attributes = {}) {
  const e = Object.assign(document.createElement(name), attributes);
  e.append(text);
  return e;
}

const pages = {
  async ""() {
    const list = element("ul", "");
    for (const p of await (await fetch(api("products"))).json()) {
      const item = element("li", "");
      item.append(element("a", p.name, { href: `products/${p.id}` }), ` ${p.price} €`);
      list.append(item);
    }
    main.append(element("h2", "Products"), list);
  },

  async products(id) {
    const response = await fetch(api(`products/${encodeURIComponent(id)}`));
    const product = await response.json();
    main.append(element("h2", response.ok ? product.name : product.error));
    if (response.ok) main.append(element("p", `${product.price} €`));
  },

  upload() {
    const file = element("input", "", { type: "file" });
    const bar = element("progress", "", { max: 1, value: 0 });
    const said = element("p", "", { id: "said" });
    file.addEventListener("change", () => {
      const request = new XMLHttpRequest();
      request.upload.addEventListener("progress", (e) => {
        bar.value = e.loaded / e.total;
        bar.dataset.steps = +(bar.dataset.steps ?? 0) + 1;
      });
      request.addEventListener("load", () => {
        said.textContent = request.status === 200 ? `The server has ${JSON.parse(request.response).bytes} bytes` : request.response;
      });
      request.addEventListener("error", () => { said.textContent = "The connection was lost"; });
      request.open("POST", api("upload"));
      request.send(file.files[0]);
    });
    main.append(element("h2", "Upload"), file, bar, said);
  },

  clock() {
    const time = element("p", "", { id: "time" });
    const source = new EventSource(api("clock"));
    source.addEventListener("message", (e) => {
      time.textContent = e.data;
      time.dataset.id = e.lastEventId;
    });
    leave = () => source.close();
    main.append(element("h2", "Clock"), time);
  },

  chat() {
    const list = element("ul", "", { id: "messages" });
    const state = element("p", "connecting", { id: "state" });
    const text = element("input", "", { name: "text", placeholder: "Message", maxLength: 500 });
    const form = element("form", text);
    form.append(element("button", "Send"));
    const url = api("chat");
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    socket.addEventListener("open", () => { state.textContent = "connected"; });
    socket.addEventListener("close", (e) => { state.textContent = `closed: ${e.code}`; });
    socket.addEventListener("message", (e) => list.append(element("li", e.data)));
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      socket.send(text.value);
      text.value = "";
    });
    leave = () => socket.close();
    main.append(element("h2", "Chat"), state, list, form);
  },
};

async function show() {
  leave();
  leave = () => {};
  main.replaceChildren();
  const [name, ...rest] = decodeURIComponent(location.pathname.slice(base.length)).split("/");
  for (const a of document.querySelectorAll("nav a")) {
    if (a.pathname === location.pathname) a.setAttribute("aria-current", "page");
    else a.removeAttribute("aria-current");
  }
  if (pages[name]) await pages[name](...rest);
  else main.append(element("h2", "There is no such page"));
}

// Links within the shop change the page without a request for another document.
document.addEventListener("click", (e) => {
  const a = e.target.closest("a");
  if (!a || a.origin !== location.origin || !a.pathname.startsWith(base)) return;
  e.preventDefault();
  history.pushState(null, "", a.href);
  show();
});
addEventListener("popstate", show);
show();
