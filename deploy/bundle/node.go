package bundle

import (
	"fmt"
	"regexp"
	"strings"
)

// unresolved is esbuild's message for an import that leads nowhere.
var unresolved = regexp.MustCompile(`^Could not resolve "([^"]+)"$`)

// nodeModule is the module of Node, without its prefix, that is missing according to a message of esbuild with these
// notes.
func nodeModule(text string, notes []string) (name string, ok bool) {
	m := unresolved.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	name, prefixed := strings.CutPrefix(m[1], "node:")
	for _, note := range notes {
		prefixed = prefixed || strings.Contains(note, "built into node")
	}
	return name, prefixed
}

// platforms are the runtimes that have modules with these schemes.
var platforms = map[string]string{
	cloudflare: "Cloudflare's runtime", "bun": "Bun", "deno": "Deno", "npm": "Deno", "jsr": "Deno",
	"workerd": "Cloudflare's runtime",
}

// platformModule is the scheme and the name of a module of another runtime that is missing according to a message of
// esbuild.
func platformModule(text string) (scheme, name string, ok bool) {
	m := unresolved.FindStringSubmatch(text)
	if m == nil {
		return "", "", false
	}
	scheme, name, ok = strings.Cut(m[1], ":")
	return scheme, name, ok && platforms[scheme] != ""
}

// refusePlatform is the message for an import of such a module.
func refusePlatform(scheme, name string) (string, []string) {
	advice := "use the web API, or an npm package that does not need it"
	switch {
	case scheme == "npm" || scheme == "jsr":
		advice = "install the package into node_modules next to the source, and import it by its name"
	case scheme == cloudflare:
		if a, ok := insteadOfCloudflare(name); ok {
			advice = a
		}
	}
	return fmt.Sprintf("import of %q: it is a module of %s, which a worker does not have", scheme+":"+name, platforms[scheme]), []string{advice}
}

// wantsNode says how a worker has Node's modules.
const wantsNode = `a worker has Node's modules if its manifest says "node": true (wrangler's: the flag nodejs_compat)`

// refuseNode is the message for an import of a module of Node, as the author or a package wrote it.
func refuseNode(text, name string) (string, []string) {
	written := unresolved.FindStringSubmatch(text)[1]
	top, _, _ := strings.Cut(name, "/")
	advice := "use the web API, or an npm package that does not need it"
	if a, ok := insteadOf(top); ok {
		advice = a
	}
	return fmt.Sprintf("import of %q: %s", written, wantsNode), []string{advice}
}

// insteadOf says what a worker uses instead of a module of Node.
func insteadOf(module string) (string, bool) {
	switch module {
	case "buffer":
		return "use Uint8Array with TextEncoder, TextDecoder, atob() and btoa(); or the npm package buffer, imported as \"buffer/\"", true
	case "crypto":
		return "use the global crypto: crypto.subtle, crypto.getRandomValues(), crypto.randomUUID()", true
	case "events":
		return "use EventTarget; or the npm package events, imported as \"events/\"", true
	case "stream", "string_decoder":
		return "use ReadableStream, WritableStream, TransformStream and TextDecoderStream", true
	case "zlib":
		return "use CompressionStream and DecompressionStream", true
	case "net", "tls":
		return "use connect() of cloudflare:sockets", true
	case "http", "https", "http2", "dgram", "dns":
		return "use fetch()", true
	case "url", "querystring", "punycode":
		return "use URL and URLSearchParams", true
	case "util":
		return "use TextEncoder, TextDecoder, structuredClone() and console.log(), which shows objects as util.inspect() does", true
	case "path":
		return "use URL, or the npm package path-browserify", true
	case "perf_hooks":
		return "use the global performance", true
	case "timers":
		return "use setTimeout(), setInterval(), setImmediate() and queueMicrotask()", true
	case "fs":
		return "a worker has no files: import .json, .txt, .html, .md, .csv and .sql files, which are put into the bundle", true
	case "process", "os", "child_process", "cluster", "module", "vm", "v8":
		return "a worker has no process of its own; variables come as env, the second argument of a handler", true
	case "worker_threads":
		return "use env.QUEUE.send(), which has another event run; structuredClone(), MessageChannel and BroadcastChannel in this one", true
	}
	return "", false
}

// missingExport is esbuild's error for a name that cloudflare:workers does not export, and undefinedExport its warning
// where the name is a property of the whole module.
var (
	missingExport   = regexp.MustCompile(`^No matching export in "cloudflare:workers" for import "([^"]+)"$`)
	undefinedExport = regexp.MustCompile(`^Import "([^"]+)" will always be undefined because there is no matching export in "cloudflare:workers"$`)
)

// workersName is the name that cloudflare:workers does not export according to a message of esbuild.
func workersName(text string) (name string, ok bool) {
	for _, message := range []*regexp.Regexp{missingExport, undefinedExport} {
		if m := message.FindStringSubmatch(text); m != nil {
			return m[1], true
		}
	}
	return "", false
}

// refuseWorkersName is the message for a name that cloudflare:workers does not export here.
func refuseWorkersName(name string) (string, []string) {
	advice := fmt.Sprintf("it exports %s", strings.Join(workersNames, ", "))
	if a, ok := insteadOfWorkers[name]; ok {
		advice = a
	}
	return fmt.Sprintf("import of %q from \"cloudflare:workers\": a worker does not have it", name), []string{advice}
}

// insteadOfWorkers says what a worker uses instead of a name of cloudflare:workers.
var insteadOfWorkers = map[string]string{
	"DurableObject":      "mode persistent keeps state in one process, and what outlives it is behind fetch()",
	"WorkflowEntrypoint": "use tasks: env.QUEUE.send() has another event run, and task() is retried when it throws",
	"RpcStub":            stubs,
	"RpcPromise":         stubs,
	"RpcProperty":        stubs,
	"ServiceStub":        stubs,
	"withEnv":            passEnv,
	"withExports":        passEnv,
	"withEnvAndExports":  passEnv,
	"cache":              "use caches.default or caches.open()",
	"tracing":            "write to the console: log lines have the event's id",
	"abortIsolate":       "throw an error: it ends the event",
	"default":            "import names in braces: import { env } from \"cloudflare:workers\"",
}

const (
	stubs   = "no stub of an object passes between workers: send data, by a queue or fetch()"
	passEnv = "pass the object as an argument, or keep it in an AsyncLocalStorage"
)

// insteadOfCloudflare says what a worker uses instead of a module of Cloudflare's runtime.
func insteadOfCloudflare(module string) (string, bool) {
	switch module {
	case "email":
		return "send mail by the HTTP API of a mail service, with fetch()", true
	case "workflows":
		return "use tasks: env.QUEUE.send() has another event run, and task() is retried when it throws", true
	case "test":
		return "use 'pinwheel dev' with 'pinwheel send', or a test runner of your own around the handlers", true
	case "node":
		return wantsNode + "; or export default an object with fetch(request, env, ctx)", true
	}
	return "", false
}
