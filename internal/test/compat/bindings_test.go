package compat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// differences are the cases in which Pinwheel answers otherwise than workerd, with the reason.
type differences map[string]string

// servicesOptions bind the exports of the worker itself.
const servicesOptions = `{"name": "w", "bindings": {"TEXT": "t"}, "serviceBindings": {"SELF": "w", "NAMED": {"name": "w", "entrypoint": "Named"},
	"PLAIN": {"name": "w", "entrypoint": "plain"}, "BARE": {"name": "w", "entrypoint": "Bare"}, "BROKEN": {"name": "w", "entrypoint": "Broken"}}}`

// The differences of services.js.
const (
	noEntry    = "an export is an entrypoint if it answers something"
	onlyText   = "of what has no clone, its text is passed on"
	noStubs    = "there are no stubs: arguments and results are cloned"
	thrown     = "what a method throws is passed on whole"
	asSent     = "a body is read as it was sent"
	structured = "an object without a prototype is data: Object.groupBy and RegExp's groups make such"
)

var serviceDifferences = differences{
	"TRACE":                               "the Fetch standard forbids TRACE",
	"URL with a password":                 "the Fetch standard forbids it",
	"bare fetch":                          "it is the TypeError of fetch",
	"coded by the worker":                 asSent,
	"coded, passed on":                    asSent,
	"not what it says":                    asSent,
	"ctx.exports":                         noEntry,
	"ctx.exports plain":                   noEntry,
	"ctx.exports same":                    noEntry,
	"ctx.exports with props":              "ctx.props is empty",
	"data URL":                            "a service has http: and https: URLs",
	"detached fetch":                      "an operation that returns a promise rejects it",
	"empty body":                          "an empty body is none",
	"empty name":                          "a method has a name",
	"empty stream body":                   "an empty body is none",
	"failing body":                        "the request fails with its body",
	"fetch throws AggregateError":         onlyText,
	"fetch throws DOMException":           onlyText,
	"fetch throws Response":               onlyText,
	"fetch throws function":               onlyText,
	"fetch throws object":                 onlyText,
	"function argument":                   noStubs,
	"getter as property":                  noStubs,
	"method by apply":                     noStubs,
	"method throws AggregateError":        thrown,
	"method throws Response":              onlyText,
	"method throws custom":                thrown,
	"method throws error with a cause":    thrown,
	"method throws error with a function": onlyText,
	"method throws error with a name":     thrown,
	"method throws error with properties": thrown,
	"method throws function":              onlyText,
	"method throws null":                  thrown,
	"method throws number":                thrown,
	"method throws object":                thrown,
	"method throws string":                thrown,
	"method throws undefined":             thrown,
	"nine deep":                           "workerd has no limit; the service of Cloudflare has one",
	"odd names":                           "workerd calls no method whose name is a number",
	"own method":                          "workerd knows some methods only",
	"pipelined":                           noStubs,
	"property without a call":             noStubs,
	"prototype value as property":         noStubs,
	"redirect 301 of POST":                "the Fetch standard removes the header with the body",
	"redirect 303 of POST":                "the Fetch standard removes the header with the body",
	"returns Headers":                     noStubs,
	"returns ReadableStream":              noStubs,
	"returns Request":                     noStubs,
	"returns Response":                    noStubs,
	"returns RpcTarget":                   noStubs,
	"returns RpcTarget inside":            noStubs,
	"returns WritableStream":              noStubs,
	"returns class":                       noStubs,
	"returns function":                    noStubs,
	"returns function inside":             noStubs,
	"returns null prototype":              structured,
	"returns proxy":                       noStubs,
	"set":                                 "a binding is frozen",
	"takes DOMException":                  "a DOMException is a result, not an argument",
	"takes Headers":                       noStubs,
	"takes ReadableStream":                noStubs,
	"takes Request":                       noStubs,
	"takes Response":                      noStubs,
	"takes RpcTarget":                     noStubs,
	"takes RpcTarget inside":              noStubs,
	"takes WritableStream":                noStubs,
	"takes class":                         noStubs,
	"takes function":                      noStubs,
	"takes function inside":               noStubs,
	"takes null prototype":                structured,
	"takes proxy":                         noStubs,
	"takes thenable":                      noStubs,
}

// Bindings answer as those of Cloudflare's workerd do, call by call.
func TestBindings(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	const noV8 = "the content type v8 is not there"
	tests := []struct {
		file    string
		options string // of Miniflare
		ours    func(*testing.T, *worker) map[string]any
		differ  differences
	}{
		{"kv.js", `{"kvNamespaces": ["KV"]}`, together, differences{
			"put ttl 59":            "a value may live as short as one second",
			"put expiration near":   "a value may live as short as one second",
			"put lone surrogate":    "it becomes U+FFFD, as in a URL; workerd cannot read its own request",
			"put metadata function": "the service has an internal error",
			"get many numbers":      "workerd loses keys that are numbers",
			"list cursor forged":    "miniflare takes any cursor; the service of Cloudflare does not",
		}},
		{"caches.js", `{}`, together, differences{
			"put set-cookie private": "the private fields are removed, and their names stay in Cache-Control",
			"put stream":             "the length is known",
		}},
		{"objects.js", `{"r2Buckets": ["R2"]}`, oneByOne, differences{
			"put stream of unknown length": "a stream is read before it is stored",
			"custom metadata max":          "R2 documents 8192 bytes; miniflare allows 2048",
			"storage class":                "R2 says Standard; miniflare has no storage classes",
			"delete 1001":                  "R2 documents 1000 keys; miniflare does not count",
			"list cursor forged":           "miniflare takes any cursor",
			"multipart":                    "there are no multipart uploads",
		}},
		{"queue.js", `{"queueProducers": {"QUEUE": "jobs"}}`, together, differences{
			"send bytes of buffer":  "an ArrayBuffer is bytes",
			"batch bytes of buffer": "an ArrayBuffer is bytes",
			"send bytes of string":  "a string is its UTF-8",
			"send json of function": "a function has no JSON form",
			"send delay negative":   "the service refuses it, and miniflare does not",
			"send delay text":       "it is no number",
			"batch delay negative":  "the service refuses it, and miniflare does not",
			"send v8":               noV8,
			"send v8 undefined":     noV8,
			"send v8 function":      noV8,
			"send v8 symbol":        noV8,
			"send v8 cyclic":        noV8,
			"batch mixed":           noV8,
			"batch 101":             "the service refuses it, and miniflare does not",
			"batch 300 KiB":         "the service refuses it, and miniflare does not",
		}},
		{"services.js", servicesOptions, oneByOne, serviceDifferences},
		{"version.js", `{"versionMetadata": "VERSION"}`, together, nil},
	}
	var modules []string
	for _, test := range tests {
		modules = append(modules, test.file, test.options)
	}
	answers := runMiniflare(t, f.dir, modules...)
	for i, test := range tests {
		t.Run(test.file, func(t *testing.T) {
			theirs := cases(t, []byte(answers[i]))
			ours := test.ours(t, f.deploy(t, test.file))
			require.Equal(t, len(theirs), len(ours))
			for name, answer := range theirs {
				if reason, ok := test.differ[name]; ok {
					assert.NotEqual(t, answer, ours[name], "%s is the same now, and should differ: %s", name, reason)
				} else {
					assert.Equal(t, answer, ours[name], name)
				}
			}
			for name := range test.differ {
				require.Contains(t, theirs, name)
			}
		})
	}
}

// together returns the answers of one event to all cases.
func together(t *testing.T, w *worker) map[string]any {
	t.Helper()
	a := w.get(t, "http://w.test/")
	require.Equal(t, 200, a.status, a.body)
	return cases(t, []byte(a.body))
}

// oneByOne returns the answers of an event for each case: a run may make some calls only.
func oneByOne(t *testing.T, w *worker) map[string]any {
	t.Helper()
	all := map[string]any{}
	for i := 0; ; i++ {
		a := w.get(t, fmt.Sprint("http://w.test/?case=", i))
		require.Equal(t, 200, a.status, a.body)
		one := cases(t, []byte(a.body))
		if len(one) == 0 {
			return all
		}
		maps.Copy(all, one)
	}
}

// runMiniflare returns the bodies with which modules answer in workerd. modules are file, options, file, options …: one
// process of node runs them all, because its start takes longer than an answer. dir is the directory of the packages.
func runMiniflare(t *testing.T, dir string, modules ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(len(modules))*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(dir, "miniflare.mjs")}, modules...)...)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("miniflare: %v\n%s", err, exit.Stderr)
	}
	require.NoError(t, err)
	var answers []string
	require.NoError(t, json.Unmarshal(out, &answers), "%s", out)
	require.Len(t, answers, len(modules)/2)
	return answers
}

func cases(t *testing.T, text []byte) map[string]any {
	t.Helper()
	answers := map[string]any{}
	require.NoError(t, json.Unmarshal(text, &answers), "%s", text)
	return answers
}
