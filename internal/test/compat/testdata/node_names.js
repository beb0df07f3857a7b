// The names that Node's modules export, by module.
const modules = ["assert", "async_hooks", "buffer", "child_process", "cluster", "console", "crypto", "dgram", "diagnostics_channel", "dns", "domain", "events", "fs", "fs/promises", "http", "http2", "https", "inspector", "module", "net", "os", "path", "perf_hooks", "process", "punycode", "querystring", "readline", "repl", "sqlite", "stream", "stream/consumers", "stream/promises", "stream/web", "string_decoder", "timers", "timers/promises", "tls", "tty", "url", "util", "util/types", "v8", "vm", "wasi", "worker_threads", "zlib"];

export default {
  fetch() {
    const names = {};
    for (const name of modules) {
      const module = process.getBuiltinModule(name);
      let why = "";
      try {
        module.noSuchNameAtAll();
      } catch (error) {
        if (error.code === "ERR_METHOD_NOT_IMPLEMENTED") why = error.message.split(": ")[1];
      }
      names[name] = { names: Object.keys(module).filter((n) => n[0] !== "_").sort(), why };
    }
    return Response.json(names);
  },
};
