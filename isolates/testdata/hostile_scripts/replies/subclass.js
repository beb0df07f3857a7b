// a subclass of Response whose getters lie
// outcome: ok

export default { fetch() { return new (class extends Response { get status() { return 1e9; } get headers() { throw 1; } get body() { for (;;); } })("ok"); } };
