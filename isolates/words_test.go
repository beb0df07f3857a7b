package isolates

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/isolates/egress"
)

// foreign are words of libraries. A handler must not see them.
var foreign = []string{"dial tcp", "lookup ", "net/http", "http:", "x509", "tls:", "EOF", "asn1", "crypto/", "flate:",
	"gzip:", "zlib:", "runtime error", "goroutine",
	"context canceled", "context deadline", "#state", "class Request", "<nil>"}

func requirePlain(t *testing.T, text string) {
	t.Helper()
	require.NotEmpty(t, text)
	for _, word := range foreign {
		require.NotContains(t, strings.ReplaceAll(text, "http://", ""), word)
	}
}

func TestErrorsAreInPlainWords(t *testing.T) {
	base := wire(t, map[string]string{
		"/garbage": "hello world\r\n\r\n", "/status": "HTTP/1.1 abc OK\r\n\r\n",
		"/header": "HTTP/1.1 200 OK\r\nbad header\r\n\r\n",
		"/length": "HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n", "/lengths": "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
		"/chunk": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "/coding": "HTTP/1.1 200 OK\r\nTransfer-Encoding: foo\r\n\r\nzz\r\n",
		"/gzip": "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\nhello, hello", "/short": "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
		"/empty": "", "/long": "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("a", 2*egress.MaxResponseHead) + "\r\n\r\n",
	})
	secure, plain := httptest.NewTLSServer(http.NotFoundHandler()), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	t.Cleanup(plain.Close)
	b := newBench(t, loopback)
	w := worker("w", `export default { async task(event) {
		const { base, plain, secure } = event.payload, out = {};
		const text = async (url) => (await fetch(url)).text();
		const failed = async (name, f) => { try { await f(); out[name] = "did not fail" } catch (error) { out[name] = error.message } };
		for (const path of ["garbage", "status", "header", "length", "lengths", "chunk", "coding", "gzip", "short", "empty", "long"]) await failed(path, () => text(base + "/" + path));
		await failed("untrusted", () => text(secure));
		await failed("no TLS", () => text(plain.replace("http:", "https:")));
		await failed("refused", () => text("http://127.0.0.1:1/"));
		await failed("private", () => text("http://10.0.0.1/"));
		await failed("value", () => fetch(base, { headers: { x: "a\x7fb" } }));
		for (const format of ["gzip", "deflate", "deflate-raw"]) for (const data of [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [0x78, 0x9c, 1, 2, 3, 4, 5, 6], [0x78, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0], [255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]]) {
			await failed(format + data, () => new Response(new Blob([new Uint8Array(data)]).stream().pipeThrough(new DecompressionStream(format))).text());
		}
		for (const [format, i] of [["gzip", 8], ["gzip", 1], ["deflate", 1]]) await failed("sum " + format + i, async () => {
			const bytes = await new Response(new Blob(["hello"]).stream().pipeThrough(new CompressionStream(format))).bytes();
			bytes[bytes.length - i] ^= 1;
			await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format))).text();
		});
		const s = crypto.subtle, u = (...bytes) => new Uint8Array(bytes);
		for (const format of ["pkcs8", "spki"]) for (const [name, more] of [["RSA-PSS", { hash: "SHA-256" }], ["ECDSA", { namedCurve: "P-256" }], ["Ed25519"], ["X25519"], ["Ed448"], ["X448"]]) {
			for (const data of [u(), u(0x30, 3, 2, 1, 5), u(0x30, 0x82, 0xff, 0xff), u(0x30, 0)]) await failed(format + name + data, () => s.importKey(format, data, { name, ...more }, true, name[0] === "X" ? [] : format === "spki" ? ["verify"] : ["sign"]));
		}
		const jwk = { kty: "RSA", n: "AQAB", e: "AQAB", d: "AQAB", p: "AQAB", q: "AQAB", dp: "AQAB", dq: "AQAB", qi: "AQAB" };
		await failed("jwk", () => s.importKey("jwk", jwk, { name: "RSA-PSS", hash: "SHA-256" }, true, ["sign"]));
		const rsa = await s.generateKey({ name: "RSA-OAEP", modulusLength: 1024, publicExponent: u(1, 0, 1), hash: "SHA-256" }, true, ["encrypt", "decrypt"]);
		await failed("too long", () => s.encrypt("RSA-OAEP", rsa.publicKey, new Uint8Array(200)));
		const x = await s.generateKey("X25519", true, ["deriveBits"]);
		await failed("zero", async () => s.deriveBits({ name: "X25519", public: await s.importKey("raw", new Uint8Array(32), "X25519", true, []) }, x.privateKey, 256));
		class Mine { secret() { return "class Request" } }
		await failed("clone", () => structuredClone(Mine));
		await failed("clone within", () => structuredClone({ a: [Request] }));
		await failed("post", () => new MessageChannel().port1.postMessage(() => "class Request"));
		await failed("enum", () => new Request(base, { mode: "m".repeat(100000) }));
		return out;
	} }`)
	w.Limits = workers.Limits{CPU: workers.Millis(20 * time.Second)}
	o := b.run(w, task(fmt.Sprintf(`{"base": %q, "plain": %q, "secure": %q}`, base, plain.URL, secure.URL)))
	require.Nil(t, o.end.Failure)
	var all struct{ Data map[string]string }
	require.NoError(t, json.Unmarshal(o.reply.Body, &all))
	doc := all.Data
	require.Greater(t, len(doc), 70)
	for name, text := range doc {
		require.NotEqual(t, "did not fail", text, name)
		require.Less(t, len(text), 600, name)
		requirePlain(t, text)
	}
	require.Equal(t, "fetch failed: connection refused by 127.0.0.1:1", doc["refused"])
	require.Contains(t, doc["private"], "fetch failed: 10.0.0.1:80: address is not allowed")
	require.Contains(t, doc["untrusted"], "is not from an authority that is trusted")
	require.Contains(t, doc["no TLS"], "does not speak TLS")
	require.Contains(t, doc["short"], "ended the response before it was complete")
	require.Contains(t, doc["gzip"], "is not the gzip that it is said to be")
	require.Contains(t, doc["long"], "has more than 65536 bytes")
	require.Equal(t, "the data is too long for the key", doc["too long"])
}
