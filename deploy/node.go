package deploy

import (
	"fmt"
	"regexp"
	"strings"
)

// unresolved is what esbuild says of an import that leads nowhere.
var unresolved = regexp.MustCompile(`^Could not resolve "([^"]+)"$`)

// nodeModule is the module of Node without its prefix that a message of esbuild says is missing; notes are the message's.
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

// refuseNode is the message for an import of one of Node's own modules, as the author or a package wrote it.
func refuseNode(text, name string) (string, []string) {
	written := unresolved.FindStringSubmatch(text)[1]
	top, _, _ := strings.Cut(name, "/")
	advice := "use the web API, or an npm package that does without it"
	if a, ok := insteadOf(top); ok {
		advice = a
	}
	return fmt.Sprintf("import of %q: a worker has no node: modules but node:async_hooks", written), []string{advice}
}

// insteadOf says what does the work of a module of Node in a worker.
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
	case "http", "https", "http2", "net", "tls", "dgram", "dns":
		return "use fetch(); a worker opens no other connections", true
	case "url", "querystring", "punycode":
		return "use URL and URLSearchParams", true
	case "util":
		return "use TextEncoder, TextDecoder, structuredClone() and console.log(), which shows objects as util.inspect() does", true
	case "path":
		return "use URL, or the npm package path-browserify", true
	case "perf_hooks":
		return "use the global performance", true
	case "timers":
		return "use setTimeout(), setInterval() and queueMicrotask()", true
	case "fs":
		return "a worker has no files: import .json, .txt, .html, .md, .csv and .sql files, which are put into the bundle", true
	case "process", "os", "child_process", "cluster", "module", "vm", "v8":
		return "a worker has no process of its own; variables come as env, the second argument of a handler", true
	case "worker_threads":
		return "use env.QUEUE.send(), which has another event run; structuredClone() and MessageChannel in this one", true
	}
	return "", false
}
