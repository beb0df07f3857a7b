// objects whose getters never return
// outcome: ok

export default { fetch() { console.log({ get a() { for (;;); }, toString() { for (;;); }, toJSON() { for (;;); }, [Symbol.toPrimitive]() { for (;;); } }); console.log("%s %d %o", { toString() { for (;;); } }, { valueOf() { for (;;); } }, { get x() { for (;;); } }); return new Response("ok"); } };
