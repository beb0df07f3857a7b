// new classes, each with methods
// outcome: cpu, memory

export default { fetch() { const a = []; for (;;) a.push(class { #x = 1; m() { return this.#x; } static s = new Array(50); }); } };
