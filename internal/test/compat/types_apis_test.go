package compat_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every global and member in docs/reference/web-apis.md is declared by TypeScript's library or by our types.
// isolates.TestWebAPIs keeps that page correct.
func TestTypesKnowTheWebAPIs(t *testing.T) {
	t.Parallel()
	dir, _ := types(t)
	uses := usesOfWebAPIs(t)
	require.Greater(t, len(uses), 400)
	for name, lib := range map[string]string{"worker": "webworker", "dom": "dom"} {
		file := "types/apis_" + name + ".ts"
		require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(strings.Join(uses, "\n")), 0o600))
		defer func() { _ = os.Remove(filepath.Join(dir, file)) }()
		require.Empty(t, strings.Join(tsc(t, dir, []string{file}, "--lib", "esnext,dom.iterable,dom.asynciterable,"+lib),
			"\n"), lib)
	}
}

// undeclarable is missing in TypeScript's library and cannot be added to it: docs/guides/types.md says so.
const undeclarable = `type X = (typeof ReadableStream)["from"];`

var (
	apiLine  = regexp.MustCompile("(?m)^- (\\*\\*`.*)$")
	apiName  = regexp.MustCompile("\\*\\*`(\\w+)(\\*|\\(\\))?`\\*\\*")
	apiAside = regexp.MustCompile(", (which inherits from|the) `\\w+`|, not to be constructed|, the global object")
	apiParts = regexp.MustCompile("`(static )?([\\w\\[\\].]+)(\\*|\\(\\))?`")
)

// usesOfWebAPIs returns a line of TypeScript for each global and member.
func usesOfWebAPIs(t *testing.T) []string {
	page, err := os.ReadFile("../../../docs/reference/web-apis.md")
	require.NoError(t, err)
	list, _, _ := strings.Cut(string(page), "## What is not there")
	uses := []string{"export {};"}
	use := func(format string, args ...any) { uses = append(uses, fmt.Sprintf("{ "+format+" }", args...)) }
	for _, line := range apiLine.FindAllStringSubmatch(list, -1) {
		names := apiName.FindAllStringSubmatch(line[1], -1)
		for _, n := range names {
			use("const x: unknown = %s;", n[1])
		}
		_, members, _ := strings.Cut(apiAside.ReplaceAllString(line[1], ""), "**:")
		for _, m := range apiParts.FindAllStringSubmatch(members, -1) {
			holder, member := names[0][1], "\""+m[2]+"\""
			if strings.HasPrefix(m[2], "[") {
				member = "typeof " + strings.Trim(m[2], "[]")
			}
			if holder == "AsyncLocalStorage" && m[1] == "" {
				holder += "<unknown>"
			}
			if m[1] != "" || strings.ToLower(holder[:1]) == holder[:1] ||
				holder == "AsyncContext" || holder == "WebAssembly" {
				holder = "typeof " + holder
			}
			if line := fmt.Sprintf("type X = (%s)[%s];", holder, member); line != undeclarable {
				use("%s", line)
			}
		}
	}
	return uses
}
