package console

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// A Host is known only if it is an address, localhost, or a name of the configuration: no name of somebody else is.
func FuzzKnownHosts(f *testing.F) {
	for _, seed := range []string{"localhost:8423", "[::1]:8423", "127.0.0.1", "console.example", "evil.example",
		"localhost.evil.example", "[localhost]", "::1%lo", "a:b:c", "", ":", "0x7f.1", "１２７.0.0.1"} {
		f.Add(seed)
	}
	cfg := Config{Hosts: []string{"console.example"}}
	f.Fuzz(func(t *testing.T, host string) {
		if !cfg.knows(host) {
			return
		}
		name := host
		if h, _, err := net.SplitHostPort(host); err == nil {
			name = h
		}
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		_, err := netip.ParseAddr(strings.Trim(name, "[]"))
		require.True(t, err == nil || name == "localhost" || name == "console.example", "%q", host)
	})
}

// Headers that a form has are those that headerText wrote, and those that people write are read or refused.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{"X-Order: 1\nX-Order: 2\n", "a:b", ":", "a", "\r\n\r\n", "A : b : c", "é: ü"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseHeaders(text)
		if err != nil {
			require.ErrorContains(t, err, "each line is Name: value")
			return
		}
		if !utf8.ValidString(text) || strings.Contains(text, "\r") {
			return
		}
		again, err := parseHeaders(headerText(h))
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}

// A link behind the login stays on this console.
func FuzzWithin(f *testing.F) {
	for _, seed := range []string{"/dead?text=x", "//evil.example", `/\evil.example`, "/\t/evil.example", "javascript:x",
		""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		to := within(path)
		require.True(t, strings.HasPrefix(to, "/"))
		require.False(t, len(to) > 1 && (to[1] == '/' || to[1] == '\\'), "%q", to)
		require.False(t, strings.ContainsAny(to, "\\\r\n\t"), "%q", to)
	})
}

// The pieces of a stack are the stack, and each link leads to the code of the worker and nowhere else.
func FuzzStackPieces(f *testing.F) {
	for _, seed := range []string{"Error: no\n    at f (lib/a.ts:12:3)\n    at async w.js:1:2", "at x (//evil.example:1:1)",
		"at eval (eval at f (a.js:3:4), <anonymous>:1:1)", "at a:b:1:2)", "at (:1:1)", "at :1:1", "at f (javascript:x:1:1)\r\n",
		"    at x:0:1", "at x:+1:+2", "at x:1:99999999999999999999", "at \x00:1:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, stack string) {
		var whole strings.Builder
		for _, p := range stackPieces("acme", "w", "1-a", stack) {
			whole.WriteString(p.Text)
			if p.Link == "" {
				continue
			}
			to, err := url.Parse(p.Link)
			require.NoError(t, err)
			require.Equal(t, []string{"", "", "/workers/acme/w/code"}, []string{to.Scheme, to.Host, to.Path})
			place := to.Query().Get("file") + ":" + to.Query().Get("line") + ":"
			require.True(t, strings.HasPrefix(p.Text, place), "%q %q", p.Text, p.Link)
		}
		require.Equal(t, stack, whole.String())
		for _, p := range stackPieces("a/b", "w", "1-a", stack) {
			require.Empty(t, p.Link)
		}
	})
}
