// what is kept until the heap is full, in mode oneshot
// outcome: memory, cpu
// mode: oneshot
// events: 2

const kept = [];
export default { fetch() { for (;;) kept.push(new Array(1000).fill(1.5)); } };
