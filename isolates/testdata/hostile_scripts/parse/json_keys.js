// JSON.parse of an object with a million keys
// outcome: cpu, memory
// strays

export default { fetch() { let s = ""; for (let i = 0; i < 3e5; i++) s += `"k${i}":${i},`; for (;;) JSON.parse(`{${s}"z":0}`); } };
