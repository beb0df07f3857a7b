// Computes: so many rounds of xorshift. The first run, which nothing is compiled for, takes ten times as long as later ones.

export default {
  async fetch(request) {
    const { id, seed, rounds } = await request.json();
    let x = (seed | (1 << 31)) >>> 0;
    for (let i = 0; i < rounds; i++) {
      x ^= x << 13;
      x ^= x >>> 17;
      x ^= x << 5;
    }
    return new Response(`${id} ${x >>> 0}`);
  },
};
