// a promise subclass whose species makes endless promises
// outcome: exception, cpu

export default { fetch() { class P extends Promise { static get [Symbol.species]() { return class extends P { constructor(f) { super(f); this.then(() => this); } }; } } const p = P.resolve(1); const g = () => p.then(g); return g(); } };
