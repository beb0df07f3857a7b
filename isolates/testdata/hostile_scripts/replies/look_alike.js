// an object that looks like a Response
// outcome: exception

export default { fetch() { return { status: 200, headers: new Headers(), body: null, ok: true, __proto__: Response.prototype }; } };
