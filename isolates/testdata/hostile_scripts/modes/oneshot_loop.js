// a loop in mode oneshot
// outcome: cpu
// mode: oneshot
// events: 2

export default { fetch() { for (;;); } };
