// back references at their worst
// outcome: cpu

export default { fetch() { return new Response(String(/(x+x+)+\1y/.test("x".repeat(100)))); } };
