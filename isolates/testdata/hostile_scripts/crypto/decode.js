// legacy encodings of much and of nonsense
// outcome: ok, cpu, memory

export default { fetch() {
  const data = new Uint8Array(4 << 20).map((_, i) => i * 7 >> 3);
  for (const label of ["gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "koi8-r"]) new TextDecoder(label).decode(data);
  return new Response("ok");
} };
