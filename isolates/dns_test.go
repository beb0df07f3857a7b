package isolates

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// inNode runs a task handler that has Node's modules.
func (b *bench) inNode(body string) any {
	b.t.Helper()
	b.t.Log(body) // of which one fails
	return b.task(fmt.Sprintf(`import { builtin } from "pinwheel:node";
		const why = (f) => { try { const v = f(); return v?.then ? v.then((x) => x, (e) => e.code + ": " + e.message) : v } catch (e) { return e.code + ": " + e.message } };
		const called = (f) => new Promise((done) => f((...values) => done(values.map((v) => v instanceof Error ? v.code : v))));
		export default { async task() { %s } }`, body), "")["data"]
}

// node:dns finds the addresses that a worker may connect to. All other names do not exist.
func TestNodeDNS(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	const dns = `const dns = builtin("dns"), dp = builtin("dns/promises"); `
	require.Equal(t, []any{nil, "127.0.0.1", 4.0}, b.inNode(dns+`return called((cb) => dns.lookup("localhost", 4, cb))`))
	require.Equal(t, map[string]any{"address": "127.0.0.1", "family": 4.0},
		b.inNode(dns+`return dp.lookup("localhost", { family: "IPv4" })`))
	require.Equal(t, []any{map[string]any{"address": "::1", "family": 6.0}},
		b.inNode(dns+`return dp.lookup("::1", { all: true })`))
	require.Equal(t, []any{nil, []any{"127.0.0.1"}}, b.inNode(dns+`return called((cb) => dns.resolve4("localhost", cb))`))
	require.Equal(t, []any{"127.0.0.1"}, b.inNode(dns+`return new dp.Resolver().resolve("localhost")`))
	require.Equal(t, []any{
		"ENOTFOUND: getaddrinfo ENOTFOUND nobody.invalid", "ENOTFOUND: queryA ENOTFOUND nobody.invalid",
		"ENOTFOUND: getaddrinfo ENOTFOUND " + fmt.Sprintf("%0300d", 0), "ENOTFOUND: getaddrinfo ENOTFOUND a\x00b",
		"ENODATA: queryAaaa ENODATA 127.0.0.1",
	}, b.inNode(dns+`return Promise.all([why(() => dp.lookup("nobody.invalid")), why(() => dp.resolve4("nobody.invalid")),
		why(() => dp.lookup("0".repeat(300))), why(() => dp.lookup("a\0b")), why(() => dp.resolve6("127.0.0.1"))])`))
	require.Equal(t, []any{
		"ERR_INVALID_ARG_VALUE: The property 'options.family' must be one of: 0, 4, 6. Received 5",
		`ERR_INVALID_ARG_TYPE: The "callback" argument must be of type function. Received undefined`,
		`ERR_INVALID_ARG_TYPE: The "hostname" argument must be of type string. Received type number (5)`,
		"ERR_INVALID_ARG_VALUE: The argument 'rrtype' is invalid. Received 'FOO'",
		"ERR_METHOD_NOT_IMPLEMENTED: node:dns has no records of the type MX in a worker: use a resolver by HTTPS, with fetch()",
		"ERR_METHOD_NOT_IMPLEMENTED: node:dns has no resolveTxt() in a worker: use a resolver by HTTPS, with fetch()",
		"ERR_METHOD_NOT_IMPLEMENTED: node:dns has no setServers() in a worker: the fleet's resolver is asked; ask another one by HTTPS, with fetch()",
	}, b.inNode(dns+`return Promise.all([why(() => dns.lookup("x", { family: 5 }, () => {})), why(() => dns.lookup("x")), why(() => dp.lookup(5)),
		why(() => dp.resolve("x", "FOO")), why(() => dp.resolve("x", "MX")), why(() => dp.resolveTxt("x")), why(() => dns.setServers(["1.1.1.1"]))])`))
	require.Equal(t, "ECANCELLED", b.inNode(dns+`const r = new dns.Resolver(); const got = called((cb) => r.resolve4("localhost", cb)); r.cancel();
		return (await got)[0]`))
	require.Equal(t, "ok", b.inNode(dns+`dns.lookup("localhost", () => {}); return "ok"`),
		"the run ends while a name is looked up")
	b.holdsNothing()
	strict := newBench(t)
	require.Equal(t, []any{
		"ENOTFOUND: getaddrinfo ENOTFOUND localhost", "ENOTFOUND: queryA ENOTFOUND localhost",
		"ENOTFOUND: queryA ENOTFOUND 10.0.0.1",
	}, strict.inNode(dns+`return Promise.all([why(() => dp.lookup("localhost")), why(() => dp.resolve4("localhost")), why(() => dp.resolve4("10.0.0.1"))])`))
}

// Each name counts as a subrequest, and what code has changed of the language changes nothing.
func TestNodeDNSBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t, loopback)
	b.cpu = ample
	require.Equal(t, []any{50.0, 9950.0, "too many subrequests: at most 50 per event"}, b.inNode(`
		const dp = builtin("dns/promises"), all = [];
		for (let i = 0; i < 10_000; i++) all.push(dp.lookup("localhost"));
		const said = await Promise.allSettled(all);
		const failed = said.filter((s) => s.status === "rejected");
		return [said.length - failed.length, failed.length, failed[0].reason.message.split(": ").slice(1).join(": ")]`))
	require.Equal(t, []any{"127.0.0.1", 4.0, []any{}}, b.inNode(`
		const dp = builtin("dns/promises"), seen = [];
		for (const name of ["address", "family", "all", "order", "0", "done", "run"]) {
			for (const proto of [Object.prototype, Array.prototype]) {
				Object.defineProperty(proto, name, { configurable: true, get() { return undefined }, set() { seen.push(name) } });
			}
		}
		Map.prototype.get = Map.prototype.set = Array.prototype.push = () => { seen.push("called") };
		const { address, family } = await dp.lookup("localhost", { family: 4 });
		await dp.resolve4("localhost");
		const out = ["", 0, []];
		return JSON.parse(JSON.stringify({ a: [address, family, { length: seen.length }] })).a.map((v, i) => i === 2 ? (v.length === 0 ? [] : seen) : v)`))
	b.holdsNothing()
}
