// atob and btoa.

test("btoa", () => {
  const cases = { "": "", "a": "YQ==", "ab": "YWI=", "abc": "YWJj", "\0": "AA==", "\xff\xfe\xfd": "//79", "abcd": "YWJjZA==" };
  for (const [input, expected] of Object.entries(cases)) assert.equal(btoa(input), expected, JSON.stringify(input));
  assert.equal(btoa(undefined), btoa("undefined"));
  assert.equal(btoa(null), btoa("null"));
  assert.equal(btoa(12), "MTI=");
  for (const bad of ["Ā", "a€", "😀"]) assert.throws(() => btoa(bad), "InvalidCharacterError", bad);
  assert.throws(() => btoa(), TypeError);
  assert.throws(() => btoa(Symbol()), TypeError);
});

test("atob: forgiving", () => {
  const cases = { "": "", "YQ==": "a", "YQ": "a", "YWI=": "ab", "YWI": "ab", "YWJj": "abc", " Y\tQ\n=\r=\f": "a", "abcd": "i\xb7\x1d", "//79": "\xff\xfe\xfd",
    "ab": "i", "abc": "i\xb7", "  ": "", "YR": "a", "YR==": "a", "nonp": "\x9e\x89\xe9" };
  for (const [input, expected] of Object.entries(cases)) assert.equal(atob(input), expected, JSON.stringify(input));
});

test("atob: refused", () => {
  for (const bad of ["a", "abcde", "=", "==", "===", "====", "a=", "a==", "a===", "ab=", "ab===", "abc==", "abcd=", "abcd==", "abcde=", "ab=c", "=a", "a-b_",
    "ab\u00a0", "ab\0", "ab\v", "€abc", "YQ= =="]) {
    assert.throws(() => atob(bad), "InvalidCharacterError", JSON.stringify(bad));
  }
  assert.throws(() => atob(undefined), "InvalidCharacterError");
  assert.equal(atob(null), "\x9e\xe9e");
  assert.throws(() => atob(), TypeError);
});

test("round trip", () => {
  let all = "";
  for (let i = 0; i < 256; i++) all += String.fromCharCode(i);
  for (let n = 0; n < 20; n++) assert.equal(atob(btoa(all.slice(n))), all.slice(n));
  const big = all.repeat(100);
  assert.equal(atob(btoa(big)), big);
});
