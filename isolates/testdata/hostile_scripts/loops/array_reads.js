// for (;;) that only reads an array
// outcome: cpu

export default { fetch() { const a = [1, 2, 3]; let s = 0; for (;;) s += a[0] + a[1] + a[2]; } };
