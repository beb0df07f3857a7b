package isolates

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

// tlsConfig makes a certificate for db.test, and the configuration of a server that has it.
func tlsConfig(t *testing.T) *tls.Config {
	t.Helper()
	dir := t.TempDir()
	testcert.Write(t, dir, "db.test", 1)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
}

func rootsOf(t *testing.T, config *tls.Config) *x509.CertPool {
	t.Helper()
	cert, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return roots
}

// netTask runs a task handler that has node:net and node:tls, and the address in host and port.
func (b *bench) netTask(address, body string) any {
	b.t.Helper()
	host, port, _ := net.SplitHostPort(address)
	return b.task(fmt.Sprintf(`import { builtin } from "pinwheel:node";
		const net = builtin("net"), tls = builtin("tls"), host = %q, port = %s;
		export default { async task() { %s } }`, host, port, body), "")["data"]
}

// A guest reaches no connection, no handler and nothing else of the runtime from a socket, whatever it walks, calls or
// puts in the place of what is there.
func TestNodeSocketsHideTheirConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	address := listen(t, echo)
	require.Equal(t, []any{}, b.netTask(address, `
		const found = [], seen = new Set();
		const look = (v, path, depth) => {
			if (v === null || typeof v !== "object" && typeof v !== "function" || seen.has(v)) return;
			seen.add(v);
			if (typeof v.command === "function" || typeof v.openTCP === "function" || "authorities" in v || "opened" in v && "closed" in v) found.push(path);
			if (depth === 0) return;
			for (let o = v; o !== null && o !== Object.prototype && o !== Function.prototype; o = Object.getPrototypeOf(o)) {
				for (const key of Reflect.ownKeys(o)) {
					let value;
					try { value = v[key] } catch { continue }
					look(value, path + "." + String(key), depth - 1);
					const d = Object.getOwnPropertyDescriptor(o, key);
					if (d) { look(d.get, path + ".get " + String(key), 1); look(d.value, path + "." + String(key), depth - 1); }
				}
			}
		};
		const raw = net.connect(port, host), over = net.connect(port, host);
		await new Promise((done) => over.once("connect", done));
		const all = { raw, over, secure: tls.connect({ port, host }), taken: tls.connect({ socket: over }), context: tls.createSecureContext() };
		for (const s of Object.values(all)) if (s.on) s.on("error", () => {});
		for (const [name, s] of Object.entries(all)) {
			look(s, name, 6);
			// Methods that begin with _ are those by which Node's streams call.
			for (let o = s; o !== null; o = Object.getPrototypeOf(o)) for (const key of Reflect.ownKeys(o)) {
				if (typeof key !== "string" || key[0] !== "_" || key.startsWith("__")) continue;
				for (const other of [raw, over]) {
					let value;
					try { value = s[key]({ once() {} }, () => {}) } catch { continue }
					look(value, name + "." + key + "()", 4);
				}
			}
		}
		return found`))
}

// What a handler writes before it knows who the server is, is held until its checkServerIdentity has said so.
func TestNothingIsSentToAWrongServer(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	config, got := tlsConfig(t), make(chan string, 10)
	secure := listen(t, func(c net.Conn) {
		text, _ := io.ReadAll(tls.Server(c, config))
		got <- string(text)
	})
	ca := b.netTask(secure, `const s = tls.connect({ host, port, rejectUnauthorized: false }); await new Promise((done) => s.once("secureConnect", done));
		s.end("hello"); await new Promise((done) => s.once("close", done)); return s.authorized`)
	require.Equal(t, false, ca)
	require.Equal(t, "hello", <-got)
	roots := newBench(t, loopback, func(c *Config) { c.RootCAs = rootsOf(t, config) })
	for check, want := range map[string]string{`new Error("not you")`: "", "undefined": "secret"} {
		roots.netTask(secure, `const s = tls.connect({ host, port, servername: "other.test", checkServerIdentity: () => (`+check+`) });
			s.on("error", () => {}); s.write("sec"); s.end("ret"); await new Promise((done) => s.once("close", done)); return null`)
		require.Equal(t, want, <-got, check)
	}
}

// The end of TLS on an open connection is the end of what the server sends, though the connection stays open.
func TestTLSEndsOnAnOpenConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	config, stop := tlsConfig(t), make(chan struct{})
	t.Cleanup(func() { close(stop) })
	upgrade := listen(t, func(c net.Conn) {
		_, _ = bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "go\n")
		s := tls.Server(c, config)
		_, _ = io.WriteString(s, "bye")
		_ = s.CloseWrite()
		<-stop // the connection below is open
	})
	require.Equal(t, []any{"bye", "end", "close"}, b.netTask(upgrade, `const raw = net.connect(port, host), seen = [];
		raw.write("please\n");
		await new Promise((done) => raw.once("data", done));
		raw.removeAllListeners();
		const s = tls.connect({ socket: raw, rejectUnauthorized: false });
		s.on("data", (x) => seen.push(String(x))); s.on("end", () => seen.push("end"));
		await new Promise((done) => s.once("close", done));
		return [...seen, "close"]`))
	b.holdsNothing()
}

// minVersion and maxVersion of node:tls bound what is spoken.
func TestVersionsOfTLS(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	config := tlsConfig(t)
	config.MaxVersion = tls.VersionTLS12
	old := listen(t, func(c net.Conn) { echo(tls.Server(c, config)) })
	ask := func(options string) any {
		return b.netTask(old, `try { const s = tls.connect({ host, port, rejectUnauthorized: false, `+options+` });
			return await new Promise((done) => { s.once("secureConnect", () => done(s.getProtocol())); s.once("error", (e) => done(e.code)); })
			} catch (e) { return e.message }`)
	}
	require.Equal(t, "TLSv1.2", ask(`minVersion: "TLSv1.2"`))
	require.Equal(t, "EPROTO", ask(`minVersion: "TLSv1.3"`))
	require.Contains(t, ask(`maxVersion: "TLSv1.1"`), "TLS before 1.2")
	require.Contains(t, ask(`minVersion: "SSLv3"`), "is not a valid minimum")
}
