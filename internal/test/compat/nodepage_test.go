package compat_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const nodePage = "../../../docs/reference/node.md"

// nodeNames are what a module of Node exports. Why says what to use instead of a module that is not there.
type nodeNames struct {
	Names []string
	Why   string
}

// TestNodePage asks workerd and a worker for the names of Node's modules, and holds docs/reference/node.md to the
// answers. UPDATE_DOCS=1 writes its tables.
func TestNodePage(t *testing.T) {
	t.Parallel()
	f := startFleet(t)
	theirs, ours := map[string]nodeNames{}, map[string]nodeNames{}
	answers := runMiniflare(t, f.dir, "node_names.js", `{"compatibilityFlags": ["nodejs_compat"]}`)
	require.NoError(t, json.Unmarshal([]byte(answers[0]), &theirs), answers[0])
	a := f.deploy(t, "node_names.js").get(t, "http://w.test/")
	require.NoError(t, json.Unmarshal([]byte(a.body), &ours), a.body)
	there := "\n| module | here | names of Cloudflare's that are not |\n|---|---|---|\n"
	absent := "\n| module | use |\n|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		if why := ours[name].Why; why != "" {
			absent += fmt.Sprintf("| `node:%s`%s | %s |\n", name, except(ours[name].Names), why)
			continue
		}
		var missing []string
		for _, n := range theirs[name].Names {
			if !slices.Contains(ours[name].Names, n) {
				missing = append(missing, "`"+n+"`")
			}
		}
		is := "all names"
		if len(missing) > 0 {
			is = fmt.Sprintf("%d of %d names", len(theirs[name].Names)-len(missing), len(theirs[name].Names))
		}
		there += fmt.Sprintf("| `node:%s` | %s | %s |\n", name, is, strings.Join(missing, ", "))
	}
	page, err := os.ReadFile(nodePage)
	require.NoError(t, err)
	have := withSection(t, withSection(t, string(page), "modules", there+"\n"), "absent", absent+"\n")
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(nodePage, []byte(have), 0o644))
		return
	}
	require.Equal(t, have, string(page), "docs/reference/node.md is out of date: UPDATE_DOCS=1 go test -run TestNodePage ./internal/test/compat writes it")
}

// except lists the names that a module has all the same.
func except(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " but `" + strings.Join(names, "`, `") + "`"
}
