// a thrown Proxy of an Error whose traps never return
// outcome: exception

export default { fetch() { throw new Proxy(new Error("x"), { get() { for (;;); }, getOwnPropertyDescriptor() { for (;;); }, getPrototypeOf() { for (;;); } }); } };
