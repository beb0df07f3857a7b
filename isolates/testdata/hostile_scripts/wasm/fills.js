// a function of as many memory.fill as pass, without a loop
// outcome: cpu, exception

const leb = (n) => [n & 127 | 128, n >> 7 & 127 | 128, n >> 14 & 127];
const section = (id, c) => [id, ...leb(c.length), ...c];
const head = [0, 97, 115, 109, 1, 0, 0, 0];
const fill = [65, 0, 65, 1, 65, 128, 128, 128, 15, 252, 11, 0]; // 30 MB
const make = (n) => {
  const body = [0]; for (let i = 0; i < n; i++) body.push(...fill); body.push(11);
  return new Uint8Array([...head, ...section(1, [1, 96, 0, 0]), ...section(3, [1, 0]), ...section(5, [1, 0, 224, 3]), ...section(7, [1, 1, 102, 0, 0]), ...section(10, [1, ...leb(body.length), ...body])]);
};
export default { fetch() {
  if (WebAssembly.validate(make(1300))) return new Response("1300 pass");
  const { f } = new WebAssembly.Instance(new WebAssembly.Module(make(900))).exports;
  for (;;) f();
} };
