// The worker of a guest who has broken V8. The attempts of guest_linux.go are expressions that use these functions, and
// `aims`. A number that they give is the result of a call of the kernel: negative = an errno. Texts are what they have
// read. isolates/v8x/breach.cc says what __breach does.

const { address, call, find, read, threads } = globalThis.__breach;

// What the request says: where to aim, and the numbers of the kernel's calls.
let aims;

function sys(name, ...args) {
  if (!(name in aims.calls)) throw new Error(`no number for ${name}`);
  return call(aims.calls[name], ...args);
}

const AT_FDCWD = -100, O_WRONLY_CREAT = 0o101, O_RDWR = 2;
const SIGKILL = 9, SIGCHLD = 17, SIGURG = 23;
const WNOHANG = 1, WALL = 0x40000000, ETIMEDOUT = 110;
const MSG_NOSIGNAL = 0x4000, MSG_DONTWAIT = 0x40, ENOTSOCK = 88, ENOSYS = 38;
const AF_UNIX = 1, AF_INET = 2, AF_INET6 = 10, SOCK_STREAM = 1, SOCK_NONBLOCK = 0o4000;
const PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS_POPULATE = 0x8022;
const PTRACE_SEIZE = 0x4206, PTRACE_INTERRUPT = 0x4207, PTRACE_DETACH = 17;
const CLONE_NEWUSER = 0x10000000, AT_EMPTY_PATH = 0x1000;

const bytes = (text) => Uint8Array.from(text, (c) => c.charCodeAt(0));
const path = (text) => bytes(text + "\0");
const latin1 = (bytes) => Array.from(bytes, (b) => String.fromCharCode(b)).join("");
const hex = (bytes) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
const words = (...numbers) => new Uint8Array(BigUint64Array.from(numbers, BigInt).buffer);

// Files.

const open = (name, flags) => sys("openat", AT_FDCWD, path(name), flags, 0o600);

function readSome(fd) {
  const got = new Uint8Array(4096);
  const n = sys("read", fd, got, got.length);
  sys("close", fd);
  return n < 0 ? n : [latin1(got.subarray(0, n))];
}

function readFile(name) {
  const fd = open(name, 0);
  return fd < 0 ? fd : readSome(fd);
}

function openFile(name, flags) {
  const fd = open(name, flags);
  if (fd >= 0) sys("close", fd);
  return fd;
}

const ofParent = (file) => `/proc/${sys("getppid")}/${file}`;

// Memory.

// All texts in the memory of the process that begin so, with 32 hexadecimal digits after it.
function texts(prefix) {
  const all = new Set();
  for (const at of find(bytes(prefix), 10000)) {
    const text = latin1(read(at, prefix.length + 32));
    if (/^[0-9a-f]{32}$/.test(text.slice(prefix.length))) all.add(text);
  }
  return [...all];
}

// The guest's own text is found. Only then do the attempts on the texts of others mean something.
function ownText() {
  const prefix = "own" + "-" + "text-", own = bytes(prefix + "0123456789abcdef".repeat(2));
  const found = find(own.subarray(0, prefix.length + 8), 10000).includes(address(own));
  return found ? texts(prefix) : [];
}

// The 32 bytes of an X25519 public key, of age1…: Bech32 with a checksum of 6 characters.
function publicKey(recipient) {
  const digits = Array.from(recipient.slice("age1".length, -6), (c) => "qpzry9x8gf2tvdw0s3jn54khce6mua7l".indexOf(c));
  const bits = digits.map((d) => d.toString(2).padStart(5, "0")).join("");
  return Uint8Array.from({ length: 32 }, (_, i) => parseInt(bits.slice(8 * i, 8 * i + 8), 2));
}

// The private keys that belong to it. An age.X25519Identity is two slices of Go, { secretKey, ourPublicKey }; a slice is
// an address, a length and a capacity.
function privateKeys(recipient) {
  const all = new Set();
  for (const at of find(publicKey(recipient), 1000)) {
    for (const second of find(words(at, 32), 1000)) {
      const [pointer, length] = new BigUint64Array(read(second - 24, 16).slice().buffer);
      if (length === 32n) all.add(hex(read(Number(pointer), 32)));
    }
  }
  return [...all];
}

// Processes.

// How a child ended: 0, or -errno as inChild makes it.
function ended(pid) {
  const status = new Int32Array(1), aMoment = words(0, 10_000_000);
  for (let tries = 0; tries < 1000; tries++) {
    const r = sys("wait4", pid, status, WNOHANG | WALL, 0);
    if (r < 0) return r;
    if (r === pid) return status[0] & 0x7f ? -ETIMEDOUT : -(status[0] >> 8 & 0xff);
    sys("nanosleep", aMoment, 0);
  }
  sys("kill", pid, SIGKILL);
  return -ETIMEDOUT;
}

// Makes a call of the kernel in a child. The child allocates nothing: other threads of V8 are not there to let go of
// their locks.
function inChild(...what) {
  const pid = sys("clone", SIGCHLD, 0, 0, 0, 0);
  if (pid === 0) sys("exit_group", -sys(...what));
  return pid < 0 ? pid : ended(pid);
}

// ENOEXEC: the kernel would execute it if it were a program.
function executeMemory() {
  const fd = sys("memfd_create", path("x"), 0);
  if (fd < 0) return fd;
  sys("write", fd, bytes("no program"), 10);
  const r = sys("execveat", fd, path(""), 0, 0, AT_EMPTY_PATH);
  sys("close", fd);
  return r;
}

function openRing() {
  const fd = sys("io_uring_setup", 1, new Uint8Array(120));
  if (fd >= 0) sys("close", fd);
  return fd;
}

function traceParent() {
  const pid = sys("getppid");
  const r = sys("ptrace", PTRACE_SEIZE, pid, 0, 0);
  if (r < 0) return r;
  sys("ptrace", PTRACE_INTERRUPT, pid, 0, 0); // only a thread that has stopped can be let go
  ended(pid);
  return sys("ptrace", PTRACE_DETACH, pid, 0, 0);
}

// Sockets.

function socketTo(ip, port, flags, use) {
  const fd = sys("socket", AF_INET, SOCK_STREAM | flags, 0);
  if (fd < 0) return fd;
  const to = Uint8Array.of(AF_INET, 0, port >> 8, port & 255, ...ip.split(".").map(Number), 0, 0, 0, 0, 0, 0, 0, 0);
  const r = sys("connect", fd, to, to.length);
  if (r === 0 && use) return use(fd);
  sys("close", fd);
  return r;
}

// Writes to each descriptor, but not to those TCP connections that NATS has not: the answer to this request goes over one.
// Returns how many took all of it.
function forge() {
  const frame = bytes(aims.forged), peer = new Uint8Array(128);
  let taken = 0;
  for (let fd = 0; fd < 1024; fd++) {
    if (sys("getpeername", fd, peer, Uint32Array.of(peer.length)) === 0) {
      const family = peer[0] | peer[1] << 8, port = peer[2] << 8 | peer[3];
      if ((family === AF_INET || family === AF_INET6) && port !== aims.natsPort) continue;
    }
    let n = sys("sendto", fd, frame, frame.length, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
    if (n === -ENOTSOCK || n === -ENOSYS) n = sys("write", fd, frame, frame.length);
    if (n === frame.length) taken++;
  }
  return taken;
}

// The unix sockets of this process. A cell has two: that of its calls, and that of its events.
function unixSockets() {
  const all = [], peer = new Uint8Array(128);
  for (let fd = 0; fd < 1024; fd++) {
    const family = sys("getpeername", fd, peer, Uint32Array.of(peer.length)) === 0 ? peer[0] | peer[1] << 8 : 0;
    if (family === AF_UNIX) all.push(fd);
  }
  return all;
}

// Writes bytes to one of them: hexadecimal. Returns how many it took.
function say(which, text) {
  const all = Uint8Array.from(text.match(/../g), (two) => parseInt(two, 16));
  return sys("write", unixSockets()[which], all, all.length);
}

// What a process may have.

// How often it gets something, up to most. Then it gives all back.
function howMany(most, get, giveBack) {
  const all = [];
  while (all.length < most) {
    const one = get();
    if (one < 0) break;
    all.push(one);
  }
  for (const one of all) giveBack(one);
  return all.length;
}

const descriptors = () => howMany(aims.descriptors, () => sys("eventfd2", 0, 0), (fd) => sys("close", fd));

function memory() {
  const mebibyte = 1 << 20;
  return howMany(aims.mebibytes,
    () => sys("mmap", 0, mebibyte, PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS_POPULATE, -1, 0),
    (at) => sys("munmap", at, mebibyte));
}

export default {
  async fetch(request) {
    const asked = await request.json();
    aims = asked.aims;
    try {
      const got = attempts[asked.attempt]();
      return Response.json(typeof got === "number" ? { result: got } : { texts: got });
    } catch (e) {
      return Response.json({ error: String(e) });
    }
  },
};

// Worker in guest_linux.go adds the attempts:
