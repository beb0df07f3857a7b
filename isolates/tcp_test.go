package isolates

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

// listen serves TCP connections on loopback.
func listen(t testing.TB, serve func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() { // it ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // it ends with the connection
				defer func() { _ = c.Close() }()
				serve(c)
			}()
		}
	}()
	return l.Addr().String()
}

// dialed runs a task handler whose payload is an address.
func (b *bench) dialed(address, body string) any {
	b.t.Helper()
	return b.task(`import { connect } from "cloudflare:sockets";
		const text = (s) => new Response(s.readable).text();
		const say = async (s, what) => { const w = s.writable.getWriter(); await w.write(new TextEncoder().encode(what)); w.releaseLock(); };
		const why = (p) => p.then((v) => "no: " + JSON.stringify(v), (e) => e.constructor.name + ": " + e.message);
		export default { async task(event) { const at = event.payload; `+body+` } }`, strconv.Quote(address))["data"]
}

func echo(c net.Conn) { _, _ = io.Copy(c, c) }

// A handler speaks TCP by connect() of cloudflare:sockets.
func TestConnect(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		address := listen(t, echo)
		require.Equal(t, "hello", b.dialed(address, `const s = connect(at); await say(s, "hello"); await s.writable.close(); return text(s)`))
		_, port, _ := net.SplitHostPort(address)
		require.Equal(t, []any{address, "off", false, "hi", true}, b.dialed(address, fmt.Sprintf(`
			const s = connect({ hostname: "127.0.0.1", port: %s }, { allowHalfOpen: true });
			const { remoteAddress } = await s.opened;
			await say(s, "hi");
			const r = s.readable.getReader(), { value } = await r.read();
			await s.close();
			return [remoteAddress, s.secureTransport, s.upgraded, new TextDecoder().decode(value), (await r.read()).done]`, port)))
		line := listen(t, func(c net.Conn) { // it answers when all has come
			all, _ := io.ReadAll(c)
			_, _ = fmt.Fprintf(c, "%d bytes", len(all))
		})
		require.Equal(t, "3000000 bytes", b.dialed(line, `const s = connect(at, { allowHalfOpen: true }), w = s.writable.getWriter();
			for (let i = 0; i < 30; i++) await w.write(new Uint8Array(1e5));
			await w.close();
			return text(s)`))
		hello := listen(t, func(c net.Conn) {
			in := bufio.NewReader(c)
			name, _ := in.ReadString('\n')
			_, _ = io.WriteString(c, "hello "+name)
		})
		require.Equal(t, []any{"hello Ada\n", nil}, b.dialed(hello, `const s = connect(at); await say(s, "Ada\n");
			return [await text(s), await s.closed]`))
		large := listen(t, func(c net.Conn) { _, _ = c.Write(make([]byte, 5_000_000)) })
		require.InEpsilon(t, 5e6, b.dialed(large, `return (await new Response(connect(at).readable).arrayBuffer()).byteLength`), 0)
	}, loopback)
}

// TLS from the beginning, and on an open connection. Errors are in words.
func TestConnectSecure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := testcert.Write(t, dir, "db.test", 1)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	require.NoError(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	b := newBench(t, loopback, func(c *Config) { c.RootCAs = roots })
	direct := listen(t, func(c net.Conn) { echo(tls.Server(c, config)) })
	upgrade := listen(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "go ahead "+line)
		echo(tls.Server(c, config))
	})
	require.Equal(t, "Error: proxy request failed, cannot connect to the specified address: the certificate of "+direct+" is for another name",
		b.dialed(direct, `return why(connect(at, { secureTransport: "on" }).opened)`))
	require.Equal(t, []any{"go ahead please\n", true, "on", "secret"}, b.dialed(upgrade, `
		const s = connect(at, { secureTransport: "starttls" }), r = s.readable.getReader();
		await say(s, "please\n");
		const first = new TextDecoder().decode((await r.read()).value);
		const t = s.startTls({ expectedServerHostname: "db.test" });
		await t.opened;
		await say(t, "secret");
		const { value } = await t.readable.getReader().read();
		await t.close();
		return [first, s.upgraded, t.secureTransport, new TextDecoder().decode(value)]`))
	require.Equal(t, []any{
		"TypeError: Cannot startTls on a TLS socket.", "TypeError: Unsupported value in secureTransport socket option: maybe",
		"TypeError: Specified address is missing port.", "TypeError: Specified address could not be parsed.",
		"TypeError: expectedServerHostname is empty: the certificate would be for any server.",
	}, b.dialed(direct, `const thrown = (f) => { try { f() } catch (e) { return e.name + ": " + e.message } };
		return [thrown(() => connect(at, { secureTransport: "on" }).startTls()), thrown(() => connect(at, { secureTransport: "maybe" })),
			thrown(() => connect("localhost")), thrown(() => connect("a b:80")),
			thrown(() => connect(at, { secureTransport: "starttls" }).startTls({ expectedServerHostname: "" }))]`))
	// What came before TLS is not taken for what came by it.
	injects := listen(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "go ahead\n")
		_, _ = c.Read(make([]byte, 1))
		_, _ = io.WriteString(c, "you are root\n")
		echo(tls.Server(c, config))
	})
	require.Regexp(t, "does not speak TLS|null", b.dialed(injects, `
		const s = connect(at, { secureTransport: "starttls" });
		await s.readable.getReader().read();
		const t = s.startTls({ expectedServerHostname: "db.test" });
		return JSON.stringify(await Promise.race([why(t.opened), why(t.closed)]))`))
}

// Hosts that are not allowed, names that do not exist and ports where nobody listens are refused in words.
func TestConnectRefused(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := l.Addr().String()
	require.NoError(t, l.Close())
	open := listen(t, echo)
	b := newBench(t, loopback)
	const failed = "Error: proxy request failed, cannot connect to the specified address: "
	ask := `return why(connect(at).opened)`
	require.Equal(t, failed+"connection refused by "+closed, b.dialed(closed, ask))
	require.Equal(t, failed+"no such host: nobody.invalid", b.dialed("nobody.invalid:80", ask))
	require.Contains(t, b.dialed("10.0.0.1:80", ask), "10.0.0.1:80: address is not allowed: it is in 10.0.0.0/8")
	require.Contains(t, b.dialed("127.0.0.1:25", ask), "port 25 is closed to workers")
	strict := newBench(t)
	require.Contains(t, strict.dialed(open, ask), "address is not allowed: it is in 127.0.0.0/8: loopback")
	require.Contains(t, strict.dialed("localhost"+open[len("127.0.0.1"):], ask), "loopback", "a name that leads there")
	// The fleet's own servers are refused, whatever is allowed.
	own := newBench(t, loopback, func(c *Config) {
		c.RefuseAddress = func(a netip.AddrPort) bool { return a.String() == open }
	})
	require.Contains(t, own.dialed(open, ask), "it is one of the fleet's own servers")
	own.task(`const made = (() => { try { return connect("x:1") } catch (e) { return e.message } })();
		import { connect } from "cloudflare:sockets";
		export default { task() { if (!made.includes("no event runs")) throw new Error(made) } }`, "")
}

// A run has a number of sockets at once, each counts as a subrequest, and all end with it.
func TestConnectBounds(t *testing.T) {
	t.Parallel()
	var open atomic.Int64
	address := listen(t, func(c net.Conn) {
		open.Add(1)
		defer open.Add(-1)
		_, _ = io.Copy(io.Discard, c)
	})
	b := newBench(t, loopback)
	b.cpu = ample
	got := b.dialed(address, `const all = [];
		for (let i = 0; i < 10_000; i++) all.push(connect(at));
		const said = new Set();
		for (const s of all.slice(32)) said.add(await why(s.opened));
		return [...said]`)
	require.Equal(t, []any{
		"Error: proxy request failed, cannot connect to the specified address: too many sockets: at most 32 per event may be open",
		"Error: proxy request failed, cannot connect to the specified address: too many subrequests: at most 50 per event",
	}, got)
	require.Eventually(t, func() bool { return open.Load() == 0 }, patience, time.Millisecond, "they end with the run")
	b.holdsNothing()
}

// A server that floods is read only as fast as the reader takes. One that takes nothing holds up the writer, within
// what the run may hold. Both end with the run, also while they connect.
func TestConnectHostileServers(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	ended := make(chan struct{}, 10)
	flood := listen(t, func(c net.Conn) {
		for {
			n, err := c.Write(make([]byte, 64<<10))
			if sent.Add(int64(n)); err != nil {
				ended <- struct{}{}
				return
			}
		}
	})
	b := newBench(t, loopback)
	b.dialed(flood, `const s = connect(at), r = s.readable.getReader(); await r.read(); await scheduler.wait(200)`)
	<-ended
	require.Less(t, sent.Load(), int64(32<<20), "buffers of the system, and what may be read ahead")
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	deaf := listen(t, func(net.Conn) { <-stop })
	require.Equal(t, "waits", b.dialed(deaf, `const s = connect(at), w = s.writable.getWriter();
		let n = 0;
		const all = (async () => { for (; n < 2000; n++) await w.write(new Uint8Array(1e5)) })();
		await Promise.race([all.catch(() => {}), scheduler.wait(300)]);
		return n < 2000 ? "waits" : n`))
	require.Equal(t, "ok", b.dialed(deaf, `connect(at); return "ok"`), "the run ends while it connects")
	b.holdsNothing()
}

// node:net and node:tls have sockets of clients.
func TestNodeSockets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert := testcert.Write(t, dir, "db.test", 1)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	require.NoError(t, err)
	config := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	authority, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
	require.NoError(t, err)
	require.NotNil(t, cert)
	b := newBench(t, loopback)
	node := func(address, body string) any {
		host, port, _ := net.SplitHostPort(address)
		t.Log(body) // of which one fails
		return b.task(fmt.Sprintf(`import { builtin } from "pinwheel:node";
			const net = builtin("net"), tls = builtin("tls"), host = %q, port = %s, ca = %q;
			const events = (s, names) => new Promise((done) => { const seen = [];
				for (const n of names) s.on(n, (x) => seen.push(x instanceof Error ? n + " " + x.code + " " + x.message : x instanceof Uint8Array ? n + " " + x : n));
				s.on("close", () => done(seen)) });
			export default { async task() { %s } }`, host, port, authority, body), "")["data"]
	}
	plain := listen(t, echo)
	require.Equal(t, []any{"connect", "data hello", "end"}, node(plain, `const s = net.connect(port, host, () => s.end("hello"));
		return events(s, ["connect", "data", "end", "error"])`))
	require.Equal(t, []any{"timeout"}, node(plain, `const s = net.connect({ port, host, timeout: 20 }); s.on("timeout", () => s.destroy());
		return events(s, ["timeout", "error"])`))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := l.Addr().String()
	require.NoError(t, l.Close())
	require.Equal(t, []any{"error ECONNREFUSED connect ECONNREFUSED " + closed},
		node(closed, `return events(net.connect(port, host), ["connect", "error"])`))
	require.Equal(t, []any{"error ENOTFOUND getaddrinfo ENOTFOUND nobody.invalid"},
		node(closed, `return events(net.connect(port, "nobody.invalid"), ["connect", "error"])`))
	require.Equal(t, []any{4.0, 6.0, 0.0, 6.0, 0.0, 0.0, 6.0}, node(plain, `return ["1.2.3.4", "::1", "1.2.3", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8:9", "::1::", "fe80::1%eth0"].map(net.isIP)`))
	require.Equal(t, "a worker has no servers: its handlers answer events", node(plain, `try { net.createServer().listen(1) } catch (e) { return e.message }`))

	secure := listen(t, func(c net.Conn) { echo(tls.Server(c, config)) })
	require.Equal(t, []any{"connect", "secureConnect", "data hello", "end"}, node(secure, `const s = tls.connect({ host, port, ca, servername: "db.test" }, () => s.end("hello"));
		return events(s, ["connect", "secureConnect", "data", "end", "error"])`))
	untrusted := node(secure, `return events(tls.connect({ host, port, servername: "db.test" }), ["secureConnect", "error"])`)
	require.Contains(t, untrusted.([]any)[0], "error DEPTH_ZERO_SELF_SIGNED_CERT")
	named := node(secure, `return events(tls.connect({ host, port, ca }), ["secureConnect", "error"])`)
	require.Contains(t, named.([]any)[0], "error ERR_TLS_CERT_ALTNAME_INVALID")
	require.Equal(t, []any{false, "DEPTH_ZERO_SELF_SIGNED_CERT", "TLSv1.3", "DNS:db.test", true}, node(secure, `
		const s = tls.connect({ host, port, servername: "db.test", rejectUnauthorized: false });
		await new Promise((done) => s.once("secureConnect", done));
		return [s.authorized, s.authorizationError, s.getProtocol(), s.getPeerCertificate().subjectaltname,
			tls.checkServerIdentity("db.test", s.getPeerCertificate()) === undefined]`))
	upgrade := listen(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		_, _ = io.WriteString(c, "go ahead "+line)
		echo(tls.Server(c, config))
	})
	require.Equal(t, []any{"go ahead please\n", "secret"}, node(upgrade, `const raw = net.connect(port, host);
		raw.write("please\n");
		const first = await new Promise((done) => raw.once("data", done));
		raw.removeAllListeners();
		const s = tls.connect({ socket: raw, ca, servername: "db.test" });
		s.write("secret");
		const second = await new Promise((done, failed) => { s.once("data", done); s.once("error", failed) });
		s.end();
		await new Promise((done) => s.once("close", done));
		return [String(first), String(second)]`))
	b.holdsNothing()
}
