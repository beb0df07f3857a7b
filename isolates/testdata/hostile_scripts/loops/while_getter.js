// a loop in a getter of the answer
// outcome: cpu

export default { fetch() { return { get then() { while (true); } }; } };
