// node/os.js is node:os. It says nothing of the machine.

"use strict";

const { builtin, put } = internal.node;

const signals = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGBUS: 7, SIGFPE: 8, SIGKILL: 9, SIGUSR1: 10,
  SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14, SIGTERM: 15, SIGCHLD: 17, SIGCONT: 18, SIGSTOP: 19, SIGTSTP: 20 };
const errno = { EPERM: 1, ENOENT: 2, EINTR: 4, EIO: 5, EBADF: 9, EAGAIN: 11, ENOMEM: 12, EACCES: 13, EEXIST: 17, ENOTDIR: 20, EISDIR: 21,
  EINVAL: 22, EMFILE: 24, ENOSPC: 28, EPIPE: 32, EADDRINUSE: 98, ECONNRESET: 104, ETIMEDOUT: 110, ECONNREFUSED: 111 };
const priority = { PRIORITY_LOW: 19, PRIORITY_BELOW_NORMAL: 10, PRIORITY_NORMAL: 0, PRIORITY_ABOVE_NORMAL: -7, PRIORITY_HIGH: -14, PRIORITY_HIGHEST: -20 };

const module = put({}, {
  EOL: "\n", devNull: "/dev/null",
  constants: put({ __proto__: null }, { signals: put({ __proto__: null }, signals), errno: put({ __proto__: null }, errno), priority: put({ __proto__: null }, priority) }),
  arch() { return "x64"; },
  availableParallelism() { return 1; },
  cpus() { return []; },
  endianness() { return "LE"; },
  freemem() { return 0; },
  getPriority() { return 0; },
  homedir() { return "/tmp"; },
  hostname() { return "localhost"; },
  loadavg() { return [0, 0, 0]; },
  machine() { return "x86_64"; },
  networkInterfaces() { return {}; },
  platform() { return "linux"; },
  release() { return ""; },
  setPriority() {},
  tmpdir() { return "/tmp"; },
  totalmem() { return 0; },
  type() { return "Linux"; },
  uptime() { return builtin("process").uptime(); },
  userInfo() { return { uid: 0, gid: 0, username: "pinwheel", homedir: "/tmp", shell: null }; },
  version() { return ""; },
});
internal.nodeModules.os = module;
