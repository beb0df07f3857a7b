// Packages whose package.json maps files of Node to those of browsers, or to nothing ("browser": {…}).
import axios from "axios";
import forge from "node-forge";
import qs from "qs";
import sanitize from "sanitize-html";

export default {
  async task(event) {
    const { status, data } = await axios.post(event.payload.base + "/echo", { a: 1 }, { headers: { "x-client": "axios" }, params: { q: "x" } });
    const missing = await axios.get(event.payload.base + "/missing").catch((e) => `${e.name} ${e.response.status} ${e.response.data.error}`);
    const digest = forge.md.sha256.create().update("abc").digest().toHex();
    const cipher = forge.cipher.createCipher("AES-CBC", "0123456789abcdef");
    cipher.start({ iv: "fedcba9876543210" });
    cipher.update(forge.util.createBuffer("secret"));
    cipher.finish();
    const nested = qs.parse(qs.stringify({ a: { b: ["1", "2"] } }));
    const clean = sanitize('<b onclick="x()">bold</b><script>x()</script><a href="javascript:x()">a</a>');
    return { nested, clean, status, client: data.client, body: data.body, query: data.query, missing, digest, cipher: cipher.output.toHex() };
  },
};
