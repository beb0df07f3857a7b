// a loop in mode persistent
// outcome: cpu
// mode: persistent
// events: 2

export default { fetch() { for (;;); } };
