// compose makes the object `routes` of a worker from its files: [path, file, module, pre, post] of each. pre and post are
// the modules of those names in the directory of the file, or null.
function compose(files) {
  const routes = {};
  for (const [path, file, module, pre, post] of files) {
    const before = middleware(file, "pre", pre);
    const after = middleware(file, "post", post);
    const wrap = (handler) => async (request, env, ctx) => {
      let response = before && await before(request, env, ctx);
      if (!(response instanceof Response)) response = await handler(request, env, ctx);
      return after && await after(request, response, env, ctx) || response;
    };
    const methods = {};
    for (const [name, value] of Object.entries(module)) {
      if (typeof value === "function" && /^[A-Z]+$/.test(name)) methods[name] = wrap(value);
    }
    const own = module.default;
    const all = typeof own === "function" ? own : typeof own?.fetch === "function" ? own.fetch.bind(own) : undefined;
    if (all && Object.keys(methods).length) throw new TypeError(`${file} exports default and functions of methods: keep one of them`);
    if (!all && !Object.keys(methods).length) throw new TypeError(`${file} exports no function: default, or GET, POST and other methods`);
    routes[path] = all ? wrap(all) : methods;
  }
  return routes;
}

function middleware(file, name, module) {
  if (module && typeof module.default !== "function") throw new TypeError(`${name} beside ${file} exports no function as default`);
  return module?.default;
}

// around adds the routes to the handlers of the worker's source.
function around(exported, routes) {
  if (exported?.routes) throw new TypeError("the source exports routes, which fileRoutes makes: keep one of them");
  const worker = { routes };
  for (const name of ["fetch", "task", "scheduled", "onIdle", "onTerminate"]) {
    if (typeof exported?.[name] === "function") worker[name] = (...args) => exported[name](...args);
  }
  return worker;
}
