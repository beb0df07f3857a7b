// structuredClone of an object whose getter never returns
// outcome: cpu

export default { fetch() { structuredClone({ get a() { for (;;); } }); } };
