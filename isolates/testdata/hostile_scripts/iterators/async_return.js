// an async iterator whose return never settles
// outcome: timeout

export default { async fetch() { for await (const x of { [Symbol.asyncIterator]: () => ({ next: async () => ({ value: 1, done: false }), return: () => new Promise(() => {}) }) }) break; return new Response("ok"); } };
