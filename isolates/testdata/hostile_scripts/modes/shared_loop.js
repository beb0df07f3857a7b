// a loop in mode shared
// outcome: cpu
// mode: shared
// events: 2

export default { fetch() { for (;;); } };
