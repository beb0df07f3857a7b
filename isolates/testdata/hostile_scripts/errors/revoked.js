// a thrown revoked Proxy
// outcome: exception

export default { fetch() { const p = Proxy.revocable(new Error("x"), {}); p.revoke(); throw p.proxy; } };
