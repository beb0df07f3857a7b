// Computes one thing, as often as the URL says: GET /KERNEL/RUNS/NUMBER. The answer has the number, and ends with "ok" if
// every result was right. Each kernel is what handlers do that compute. The peers of loadtest http run this very file.

// random returns whole numbers below n, the same ones in every system.
function random(seed) {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

// hash is FNV-1a over the code units of a string or the bytes of an array.
function hash(text) {
  let h = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ (typeof text === "string" ? text.charCodeAt(i) : text[i]), 0x01000193) >>> 0;
  return h;
}

const words = "event worker stream reply queue owner limit ack retry delay schedule handler dispatch isolate message subject".split(" ");

function prose(length, seed) {
  const next = random(seed);
  const list = [];
  for (let size = 0; size < length; ) {
    const word = words[next(words.length)] + (next(9) === 0 ? "," : "");
    list.push(word);
    size += word.length + 1;
  }
  return list.join(" ");
}

// nbody moves five planets.
function nbody() {
  const bodies = [
    { x: 0, y: 0, z: 0, vx: 0, vy: 0, vz: 0, mass: 39.5 },
    { x: 4.84, y: -1.16, z: -0.1, vx: 0.6, vy: 2.8, vz: -0.02, mass: 0.038 },
    { x: 8.34, y: 4.12, z: -0.4, vx: -1.01, vy: 1.82, vz: 0.008, mass: 0.011 },
    { x: 12.9, y: -15.1, z: -0.22, vx: 1.08, vy: 0.87, vz: -0.01, mass: 0.0017 },
    { x: 15.4, y: -25.9, z: 0.18, vx: 0.98, vy: 0.59, vz: -0.035, mass: 0.002 },
  ];
  const step = 0.01;
  for (let n = 0; n < 8000; n++) {
    for (let i = 0; i < bodies.length; i++) {
      const a = bodies[i];
      for (let j = i + 1; j < bodies.length; j++) {
        const b = bodies[j];
        const dx = a.x - b.x;
        const dy = a.y - b.y;
        const dz = a.z - b.z;
        const square = dx * dx + dy * dy + dz * dz;
        const pull = step / (square * Math.sqrt(square));
        a.vx -= dx * b.mass * pull;
        a.vy -= dy * b.mass * pull;
        a.vz -= dz * b.mass * pull;
        b.vx += dx * a.mass * pull;
        b.vy += dy * a.mass * pull;
        b.vz += dz * a.mass * pull;
      }
    }
    for (const b of bodies) {
      b.x += step * b.vx;
      b.y += step * b.vy;
      b.z += step * b.vz;
    }
  }
  return hash(bodies.map((b) => Math.round(b.x * 1e3)).join());
}

// matrices multiplies two matrices of 112 rows, which are arrays of numbers.
function matrices() {
  const size = 112;
  const next = random(7);
  const make = () => Array.from({ length: size }, () => Array.from({ length: size }, () => next(1000) / 8));
  const a = make();
  const b = make();
  const product = make();
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) {
      let sum = 0;
      for (let k = 0; k < size; k++) sum += a[i][k] * b[k][j];
      product[i][j] = sum;
    }
  }
  return hash(product.map((row) => row[3]).join());
}

// sieve finds primes.
function sieve() {
  const size = 400_000;
  const composite = new Uint8Array(size);
  let primes = 0;
  for (let i = 2; i < size; i++) {
    if (composite[i]) continue;
    primes++;
    for (let j = i * i; j < size; j += i) composite[j] = 1;
  }
  return primes;
}

const roots = (() => {
  const list = [];
  for (let n = 2; list.length < 64; n++) {
    let prime = true;
    for (let d = 2; d * d <= n; d++) prime &&= n % d !== 0;
    if (prime) list.push(n);
  }
  return list;
})();
const fraction = (v) => ((v - Math.floor(v)) * 2 ** 32) | 0;
const roundConstants = new Int32Array(roots.map((p) => fraction(Math.cbrt(p))));
const initial = roots.slice(0, 8).map((p) => fraction(Math.sqrt(p)));

// sha256 hashes 128 KB as FIPS 180-4 says.
function sha256() {
  const text = new Uint8Array(128 << 10);
  for (let i = 0; i < text.length; i++) text[i] = (i * 7) & 255;
  const padded = new Uint8Array(text.length + 64);
  padded.set(text);
  padded[text.length] = 0x80;
  new DataView(padded.buffer).setUint32(padded.length - 4, text.length * 8);
  const state = initial.slice();
  const w = new Int32Array(64);
  const turn = (v, n) => (v >>> n) | (v << (32 - n));
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) {
      const p = at + 4 * i;
      w[i] = (padded[p] << 24) | (padded[p + 1] << 16) | (padded[p + 2] << 8) | padded[p + 3];
    }
    for (let i = 16; i < 64; i++) {
      const s0 = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const s1 = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + roundConstants[i] + w[i]) | 0;
      const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    [a, b, c, d, e, f, g, h].forEach((v, i) => (state[i] = (state[i] + v) | 0));
  }
  return state[0] >>> 0;
}

// deflate finds repetitions in 100 KB, and writes them with the fixed codes of RFC 1951.
const deflated = new TextEncoder().encode(prose(100_000, 3));
function deflate() {
  const data = deflated;
  const out = new Uint8Array(data.length + 64);
  let size = 0;
  let bits = 0;
  let held = 0;
  const put = (value, count) => {
    bits |= value << held;
    held += count;
    while (held >= 8) {
      out[size++] = bits & 255;
      bits >>>= 8;
      held -= 8;
    }
  };
  const putReversed = (value, count) => {
    let reversed = 0;
    for (let i = 0; i < count; i++) reversed |= ((value >> i) & 1) << (count - 1 - i);
    put(reversed, count);
  };
  const symbol = (v) => {
    if (v < 144) putReversed(0x30 + v, 8);
    else if (v < 256) putReversed(0x190 + v - 144, 9);
    else if (v < 280) putReversed(v - 256, 7);
    else putReversed(0xc0 + v - 280, 8);
  };
  // range finds the code of a length or a distance: each pair (or four) of codes has one more extra bit.
  const range = (value, group) => {
    let base = 0;
    for (let code = 0; ; code++) {
      const extra = Math.max(0, Math.floor(code / group) - 1);
      if (value < base + (1 << extra)) return [code, value - base, extra];
      base += 1 << extra;
    }
  };
  put(3, 3);
  const head = new Int32Array(1 << 14).fill(-1);
  const before = new Int32Array(data.length);
  for (let at = 0; at < data.length; ) {
    let best = 0;
    let from = 0;
    if (at + 3 <= data.length) {
      const key = ((data[at] << 10) ^ (data[at + 1] << 5) ^ data[at + 2]) & 0x3fff;
      let tries = 16;
      for (let p = head[key]; p >= 0 && at - p < 32768 && tries-- > 0; p = before[p]) {
        let length = 0;
        while (length < 257 && at + length < data.length && data[p + length] === data[at + length]) length++;
        if (length > best) {
          best = length;
          from = at - p;
        }
      }
      before[at] = head[key];
      head[key] = at;
    }
    if (best < 3) {
      symbol(data[at++]);
      continue;
    }
    const [length, rest, extra] = range(best - 3, 4);
    symbol(257 + length);
    put(rest, extra);
    const [distance, more, width] = range(from - 1, 2);
    putReversed(distance, 5);
    put(more, width);
    at += best;
  }
  symbol(256);
  put(0, 7);
  return hash(out.subarray(0, size));
}

// csv reads 200 KB character by character.
const table = (() => {
  const next = random(11);
  const cell = () => (next(4) === 0 ? `"${words[next(16)]}, ""${next(1000)}"""` : next(2) ? words[next(16)] : String(next(1e6)));
  return Array.from({ length: 2500 }, () => Array.from({ length: 10 }, cell).join(",")).join("\n");
})();
function csv() {
  const rows = [];
  let row = [];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < table.length; i++) {
    const c = table[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (table[i + 1] === '"') cell += table[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ",") {
      row.push(cell);
      cell = "";
    } else if (c === "\n") {
      row.push(cell);
      rows.push(row);
      row = [];
      cell = "";
    } else cell += c;
  }
  row.push(cell);
  rows.push(row);
  let h = rows.length;
  for (const r of rows) h = (h * 31 + hash(r[4])) >>> 0;
  return h;
}

// strings builds and takes apart many short strings.
const sentence = prose(20_000, 5);
function strings() {
  const counts = {};
  for (const word of sentence.split(" ")) {
    const clean = word.replace(",", "").toUpperCase();
    const key = clean.slice(0, 3) + "-" + clean.length;
    counts[key] = (counts[key] ?? 0) + 1;
  }
  const lines = [];
  for (let i = 0; i < 2000; i++) lines.push(`${i.toString(36).padStart(6, "0")}:${words[i % 16]}=${i * 3}`.trim());
  const joined = lines.join("&");
  return (hash(joined.split("&").map((l) => l.substring(l.indexOf(":") + 1)).join()) + Object.keys(counts).length) >>> 0;
}

// objects groups orders, as reports do.
function objects() {
  const next = random(13);
  const orders = [];
  for (let i = 0; i < 20_000; i++) orders.push({ id: i, user: "u" + next(500), item: { name: words[next(16)], price: next(10_000) }, count: 1 + next(5) });
  const users = new Map();
  for (const o of orders) {
    let u = users.get(o.user);
    if (!u) users.set(o.user, (u = { name: o.user, total: 0, items: {} }));
    u.total += o.item.price * o.count;
    u.items[o.item.name] = (u.items[o.item.name] ?? 0) + o.count;
  }
  const best = [...users.values()].sort((a, b) => b.total - a.total || (a.name < b.name ? -1 : 1)).map((u) => ({ ...u, kinds: Object.keys(u.items).length }));
  return hash(best.slice(0, 50).map((u) => u.name + u.total + u.kinds).join());
}

// json writes and reads 200 KB.
const document = (() => {
  const next = random(17);
  const list = [];
  for (let i = 0; i < 1200; i++) list.push({ id: i, name: words[next(16)], tags: [words[next(16)], words[next(16)]], price: next(1e6) / 100, stock: { here: next(9), there: null }, active: next(2) === 1 });
  return JSON.stringify(list);
})();
function json() {
  const list = JSON.parse(document);
  for (const o of list) o.price = Math.round(o.price * 2);
  const text = JSON.stringify(list);
  const again = JSON.parse(text);
  return (text.length + again.reduce((sum, o) => sum + o.price, 0)) >>> 0;
}

// markdown renders a page.
const page = (() => {
  const next = random(19);
  const lines = [];
  for (let i = 0; i < 500; i++) {
    const text = prose(90, i);
    lines.push([`## ${text.slice(0, 20)}`, `* ${text}`, `${text} **${words[next(16)]}** and \`code\` <b>`, `${text} [a link](https://example.com/${i})`, ""][next(5)]);
  }
  return lines.join("\n");
})();
function markdown() {
  const escape = (s) => s.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  const inline = (s) =>
    escape(s)
      .replace(/`([^`]+)`/g, "<code>$1</code>")
      .replace(/\*\*([^*]+)\*\*/g, "<strong>$1</strong>")
      .replace(/\[([^\]]+)\]\(([^)]+)\)/g, (_, text, url) => `<a href="${url}">${text}</a>`);
  const html = [];
  let list = false;
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) html.push(`<p>${paragraph.map(inline).join("\n")}</p>`);
    paragraph = [];
  };
  for (let times = 0; times < 4; times++) {
    for (const line of page.split("\n")) {
      const item = /^[*-] (.*)$/.exec(line);
      if (!item && list) {
        html.push("</ul>");
        list = false;
      }
      const title = /^(#{1,6}) (.*)$/.exec(line);
      if (title) {
        flush();
        html.push(`<h${title[1].length}>${inline(title[2])}</h${title[1].length}>`);
      } else if (item) {
        flush();
        if (!list) html.push("<ul>");
        list = true;
        html.push(`<li>${inline(item[1])}</li>`);
      } else if (line === "") flush();
      else paragraph.push(line);
    }
  }
  return hash(html.join("").slice(0, 5000));
}

// regexp reads the lines of a log.
const log = (() => {
  const next = random(23);
  const lines = [];
  for (let i = 0; i < 3000; i++) lines.push(`10.0.${next(256)}.${next(256)} - - [26/Nov/2026:0${next(10)}:${10 + next(50)}:07] "${["GET", "POST"][next(2)]} /${words[next(16)]}/${next(1000)}?q=${words[next(16)]} HTTP/1.1" ${[200, 404, 500][next(3)]} ${next(100_000)}`);
  return lines.join("\n");
})();
function regexp() {
  const line = /^(\d+\.\d+\.\d+\.\d+) \S+ \S+ \[([^\]]+)\] "(GET|POST) (\/[^? ]*)(?:\?([^ ]*))? HTTP\/1\.1" (\d{3}) (\d+)$/gm;
  let bytes = 0;
  let errors = 0;
  for (const m of log.matchAll(line)) {
    bytes += +m[7];
    if (m[6] >= "400") errors++;
  }
  return (bytes + errors + (log.match(/\b(?:event|queue)\b/g)?.length ?? 0)) >>> 0;
}

// kernels have their results, which are the same in every system.
const kernels = {
  nbody: [nbody, 1919315244],
  matrices: [matrices, 1610761388],
  sieve: [sieve, 33860],
  sha256: [sha256, 930904844],
  deflate: [deflate, 1285387786],
  csv: [csv, 1920817435],
  strings: [strings, 579635091],
  objects: [objects, 2165424919],
  json: [json, 12253118],
  markdown: [markdown, 826145866],
  regexp: [regexp, 150022216],
};

export default {
  async fetch(request) {
    const [, name, runs, number] = new URL(request.url).pathname.split("/");
    const [run, result] = kernels[name];
    for (let i = 0; i < +runs; i++) {
      const got = run();
      if (got !== result) return new Response(`${number} ${name} is ${got}, and must be ${result}`);
    }
    return new Response(`${number} ok`);
  },
};
