// Date and Intl, replaced
// outcome: ok
// events: 2

export default { fetch() { globalThis.Date = function () { for (;;); }; Date.now = () => { for (;;); }; globalThis.Intl = new Proxy({}, { get() { for (;;); } }); console.log(new Error("x")); setTimeout(() => {}, 1); return new Response("ok"); } };
