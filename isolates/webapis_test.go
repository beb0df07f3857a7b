package isolates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// api is the runtime's part of one global, as testdata/webapis/parts/enumerate.js sees it.
type api struct {
	Name, Kind, Parent, Of string
	Constructs             bool
	Members, Statics       []apiMember
}

type apiMember struct{ Name, Kind string }

// apiNotes is testdata/webapis/notes.json: the standard of each API, and where Pinwheel differs from it.
type apiNotes struct {
	Standards []struct {
		Name    string
		APIs    []string
		Differs []string
	}
	Missing []struct{ Name, Why string } // APIs that other runtimes have and Pinwheel lacks
}

const webAPIsPage = "../docs/reference/web-apis.md"

// docs/reference/web-apis.md says what the global object has. UPDATE_DOCS=1 writes it.
func TestWebAPIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/webapis/notes.json")
	require.NoError(t, err)
	var notes apiNotes
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(&notes))
	page := renderWebAPIs(t, enumerateAPIs(t), &notes)
	if os.Getenv("UPDATE_DOCS") != "" {
		require.NoError(t, os.WriteFile(webAPIsPage, []byte(page), 0o644))
	}
	have, err := os.ReadFile(webAPIsPage)
	require.NoError(t, err)
	require.Equal(t, page, string(have), "docs/reference/web-apis.md: UPDATE_DOCS=1 go test -run TestWebAPIs ./isolates writes it")
}

// enumerateAPIs returns the globals of a worker that are not ECMAScript's.
func enumerateAPIs(t *testing.T) map[string]api {
	t.Helper()
	globals, err := os.ReadFile("testdata/globals/globals.js")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?s)const ecmascript = (\[.*?\]);`).FindSubmatch(globals)
	require.NotNil(t, list)
	code, err := os.ReadFile("testdata/webapis/parts/enumerate.js")
	require.NoError(t, err)
	b := newBench(t)
	b.cpu = ample
	o := b.run(worker("w", string(code)), task(string(list[1])))
	require.Nil(t, o.end.Failure, "%v", b.lines())
	var doc struct{ Data []api }
	require.NoError(t, json.Unmarshal(o.reply.Body, &doc))
	apis := map[string]api{}
	for _, a := range doc.Data {
		apis[a.Name] = a
	}
	require.Greater(t, len(apis), 60)
	return apis
}

func renderWebAPIs(t *testing.T, apis map[string]api, notes *apiNotes) string {
	t.Helper()
	var out strings.Builder
	fmt.Fprintf(&out, "# Web APIs\n\nWhat a worker finds on its global object beside ECMAScript 2025 and Intl: %d names, as `isolates.TestWebAPIs` saw them. Each works as its standard says, "+
		"but for what is listed as a difference. A star marks what can be set.\n", len(apis))
	told := map[string]bool{}
	for _, s := range notes.Standards {
		fmt.Fprintf(&out, "\n## %s\n\n", s.Name)
		var loose []string // names without members
		for _, name := range s.APIs {
			a, ok := apis[name]
			require.True(t, ok, "notes.json has %s, which is no global", name)
			require.False(t, told[name], "notes.json has %s twice", name)
			told[name] = true
			if a.Kind == "function" || a.Kind == "attribute" {
				loose = append(loose, "**`"+name+map[string]string{"function": "()", "attribute": "*"}[a.Kind]+"`**")
				continue
			}
			renderAPI(&out, a)
		}
		if len(loose) > 0 {
			fmt.Fprintf(&out, "- %s\n", strings.Join(loose, ", "))
		}
		if len(s.Differs) > 0 {
			fmt.Fprint(&out, "\nDifferences:\n\n")
		}
		for _, d := range s.Differs {
			fmt.Fprintf(&out, "- %s\n", d)
		}
	}
	for name := range apis {
		require.True(t, told[name], "notes.json names no standard for %s", name)
	}
	fmt.Fprint(&out, "\n## What is not there\n\n| | why |\n|---|---|\n")
	for _, m := range notes.Missing {
		require.NotContains(t, apis, m.Name)
		fmt.Fprintf(&out, "| %s | %s |\n", m.Name, m.Why)
	}
	return out.String()
}

func renderAPI(out *strings.Builder, a api) {
	switch a.Kind {
	case "interface":
		fmt.Fprintf(out, "- **`%s`**", a.Name)
		if a.Parent != "" {
			fmt.Fprintf(out, ", which inherits from `%s`", a.Parent)
		}
		if !a.Constructs {
			fmt.Fprint(out, ", not to be constructed")
		}
	case "object":
		if a.Of == "" {
			fmt.Fprintf(out, "- **`%s`**, the global object", a.Name)
		} else {
			fmt.Fprintf(out, "- **`%s`**, the `%s`", a.Name, a.Of)
		}
	default:
		fmt.Fprintf(out, "- **`%s`**", a.Name)
	}
	parts := slices.DeleteFunc([]string{memberText("", a.Members), memberText("static ", a.Statics)},
		func(s string) bool { return s == "" })
	if len(parts) > 0 {
		fmt.Fprintf(out, ": %s", strings.Join(parts, "; "))
	}
	fmt.Fprintln(out)
}

// memberText lists members. Members that can be set have a star. Constants are only counted.
func memberText(prefix string, members []apiMember) string {
	var names []string
	constants := 0
	for _, m := range members {
		switch m.Kind {
		case "constant":
			constants++
			continue
		case "method":
			m.Name += "()"
		case "attribute":
			m.Name += "*"
		}
		names = append(names, "`"+prefix+m.Name+"`")
	}
	if constants > 0 {
		names = append(names, fmt.Sprintf("%d %sconstants", constants, prefix))
	}
	return strings.Join(names, ", ")
}
