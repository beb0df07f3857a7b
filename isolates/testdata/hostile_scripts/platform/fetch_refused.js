// fetch() of addresses inside
// outcome: ok

export default { async fetch() { for (const u of ["http://127.0.0.1:1/", "http://[::1]:1/", "http://169.254.169.254/latest/meta-data/", "http://0/", "http://0x7f000001/", "http://[::ffff:10.0.0.1]/", "http://localhost:4222/", "file:///etc/passwd", "ftp://h/"]) { try { await fetch(u); return new Response("reached " + u); } catch (e) { if (!(e instanceof TypeError)) throw e; } } return new Response("ok"); } };
