// What the cases of a module answer, as texts that node and a worker can be compared by.
function plain(key) {
  const value = this[key]; // before its toJSON()
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return "bytes " + [...new Uint8Array(value)].join(" ");
  if (value instanceof Map || value instanceof Set) return [value.constructor.name, ...value];
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  if (typeof value === "bigint") return `${value}n`;
  return value === undefined || typeof value === "function" ? typeof value : value?.toJSON?.() ?? value;
}

export async function answer(cases, name) {
  try {
    return JSON.stringify(await cases[name](), plain);
  } catch (error) {
    return `thrown ${error.name}: ${error.message}`;
  }
}

// A worker that answers a case at its path, and their names at /.
export const worker = (cases) => ({
  async fetch(request) {
    const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
    return name ? new Response(await answer(cases, name)) : Response.json(Object.keys(cases));
  },
});
