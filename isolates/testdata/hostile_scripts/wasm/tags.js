// tags that differ, whose types V8 keeps until the process ends
// outcome: exception, cpu

const types = ["i32", "i64", "f32", "f64"];
const { constructor } = WebAssembly.Tag.prototype;
export default { fetch() {
  for (let n = 0;; n++) {
    const parameters = [];
    for (let i = 0; i < 10; i++) parameters.push(types[n >> 2 * i & 3]);
    new constructor({ parameters });
  }
} };
