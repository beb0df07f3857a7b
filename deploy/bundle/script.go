package bundle

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pinwheel-run/pinwheel/deploy/fileroutes"
	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

//go:embed builtin/script.js
var scriptAdapter string

// scriptModule is the module that makes a handler of a script. Its frames are the runtime's: authors do not see them.
const scriptModule = "runtime/script.js"

// A script is a source as Hoody has it: a body of code that runs for each request, with req, res, ws, metadata and
// shared around it, which answers by `return` or by res. It becomes the body of a function, where it stands in its
// file, and script.js makes a handler of that function.

// scriptNames are what a script has around it, and nothing else. shared is a global of every worker.
var scriptNames = []string{"req", "res", "ws", "metadata"}

// alsoInScripts is what a script may use too: it tells of no script.
var alsoInScripts = []string{"env", "ctx"}

// notOfScripts are names that a source uses which hands over its handlers in another way.
var notOfScripts = []string{"module", "exports", "addEventListener", "self.addEventListener",
	"globalThis.addEventListener"}

// database is a name that scripts have at Hoody, and here have not.
const (
	database   = "Database"
	noDatabase = "Database is not here: env has values and objects that stay (kv and objects in the manifest)"
)

// scripts are the files of a bundle that may be scripts, by their real paths. The value is the function of script.js
// that takes the script.
type scripts map[string]string

// scripts finds the sources that may be scripts: that of the worker, and the files with routes.
func (l layout) scripts() scripts {
	s := scripts{}
	add := func(path string) {
		if real, err := realPath(path); err == nil {
			s[real] = "script"
			if path != l.source && fileroutes.IsAround(path) {
				s[real] = baseName(path) // pre or post
			}
		}
	}
	if l.source != "" {
		add(l.source)
	}
	if l.routes != nil {
		for _, file := range l.routes.Files {
			add(filepath.Join(l.routes.real, filepath.FromSlash(file)))
		}
	}
	return s
}

// plugin loads the scripts among these files. Others are left to the next plugin, and so are files that cannot be read.
func (s scripts) plugin(p *project) api.Plugin {
	return api.Plugin{Name: "pinwheel scripts", Setup: func(b api.PluginBuild) {
		b.OnLoad(api.OnLoadOptions{Filter: `.`, Namespace: "file"}, func(a api.OnLoadArgs) (r api.OnLoadResult, err error) {
			kind := s[a.Path]
			if kind == "" || len(a.With) > 0 {
				return r, nil
			}
			source, err := p.read(a.Path, maxSource)
			if err != nil {
				return r, nil //nolint:nilerr // the next plugin says why
			}
			text, uses, ok := wrapScript(a.Path, string(source), kind)
			if !ok {
				return r, nil
			}
			r.Contents, r.Loader = &text, loaderOf(a.Path)
			if rel, err := filepath.Rel(p.dir, a.Path); err == nil && uses(database) {
				r.Warnings = []api.Message{{Text: noDatabase, Location: &api.Location{File: filepath.ToSlash(rel)}}}
			}
			return r, nil
		})
	}}
}

func loaderOf(path string) api.Loader {
	switch filepath.Ext(path) {
	case ".ts", ".mts":
		return api.LoaderTS
	case ".tsx":
		return api.LoaderTSX
	case ".jsx":
		return api.LoaderJSX
	}
	return api.LoaderJS
}

// wrapScript is the module that a script becomes, and which names the script uses; false = the source is no script.
func wrapScript(path, source, kind string) (text string, uses func(name string) bool, ok bool) {
	comments, err := manifest.ParseComments(path, []byte(source))
	if err != nil {
		return "", nil, false
	}
	whole, ok := parseSource(path, source+"\nexport {};\n")
	if !ok || len(whole.exports) > 0 {
		return "", nil, false
	}
	code := emptyExport.ReplaceAllStringFunc(source, func(s string) string { return blanks.ReplaceAllString(s, " ") })
	at := afterImports(code)
	maker := "__pinwheelScript"
	for strings.Contains(source, maker) {
		maker += "_"
	}
	headFor := func(names []string) string {
		return fmt.Sprintf(`;import { %s as %s } from "pinwheel:script"; export default %s(async function ({ %s }) {`,
			kind, maker, maker, strings.Join(names, ", "))
	}
	const tail = "\n});\n"
	inside, ok := parseSource(path, code[:at]+headFor(nil)+code[at:]+tail)
	if !ok || slices.ContainsFunc(notOfScripts, inside.uses) {
		return "", nil, false
	}
	used := slices.Concat(scriptNames, alsoInScripts)
	used = slices.DeleteFunc(used, func(name string) bool { return !inside.uses(name) })
	tells := inside.uses("shared") || slices.ContainsFunc(scriptNames, inside.uses)
	if !whole.returns && !comments.Hoody && !tells {
		return "", nil, false
	}
	head := headFor(used)
	return code[:at] + head + code[at:] + tail + mapWithout(path, source, at, len(head)), inside.uses, true
}

// emptyExport is what makes a module of a file of TypeScript, as its last line. It exports nothing.
var (
	emptyExport = regexp.MustCompile(`(?:^|\n)\s*export\s*\{\s*\}\s*;?\s*$`)
	blanks      = regexp.MustCompile(`[^\n]`)
)

// parsed is what a parse of a source tells.
type parsed struct {
	exports []string
	returns bool // there is a `return` outside of functions
	code    string
	free    map[string]string // what stands in code for a name that the source does not declare
}

func (p parsed) uses(name string) bool { return strings.Contains(p.code, p.free[name]) }

// parseSource parses a module; false = it is none, or has faults, which the bundler tells. esbuild has no tree to look
// at. So it replaces the names that the source does not declare by others, which nothing else in the source can be.
func parseSource(path, source string) (p parsed, ok bool) {
	mark := "pinwheelFree"
	for strings.Contains(source, mark) {
		mark += "_"
	}
	p.free = map[string]string{}
	for i, name := range slices.Concat(scriptNames, alsoInScripts, notOfScripts, []string{"shared", database}) {
		p.free[name] = fmt.Sprintf("%s%dx", mark, i)
	}
	result := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: source, Sourcefile: filepath.Base(path), Loader: loaderOf(path)},
		Define: maps.Clone(p.free), Format: api.FormatESModule, Target: api.ESNext, Metafile: true, Outfile: "/out.js",
		AbsWorkingDir: "/", TsconfigRaw: "{}", LogLevel: api.LogLevelSilent,
	})
	for _, e := range result.Errors {
		if !strings.HasPrefix(e.Text, "Top-level return") {
			return p, false
		}
		p.returns = true
	}
	if p.returns {
		return p, true
	}
	var meta struct {
		Outputs map[string]struct {
			Exports []string `json:"exports"`
		} `json:"outputs"`
	}
	if json.Unmarshal([]byte(result.Metafile), &meta) != nil || len(result.OutputFiles) != 1 {
		return p, false
	}
	for _, out := range meta.Outputs {
		p.exports = out.Exports
	}
	p.code = string(result.OutputFiles[0].Contents)
	return p, true
}

// importHead is an import declaration, or what may stand before one: white space, a comment, a semicolon.
var importHead = regexp.MustCompile(`^(?:\s|;|//[^\n]*(?:\n|$)|(?s:/\*.*?\*/)|` +
	`import(?:\s+type)?\b(?:[\w$\s,*]|\{[^{}'"]*\}|(?s:/\*.*?\*/))*(?:\bfrom\b)?\s*(?:"[^"\n]*"|'[^'\n]*')` +
	`(?:\s*with\s*\{[^{}]*\})?)`)

// afterImports is where the code of a script begins: behind its import declarations. Without one it is the beginning of
// the file, or its second line if the first one names a program.
func afterImports(source string) int {
	at := 0
	if strings.HasPrefix(source, "#!") {
		line, _, _ := strings.Cut(source, "\n")
		at = min(len(line)+1, len(source))
	}
	for i := at; ; {
		found := importHead.FindString(source[i:])
		if found == "" {
			return at
		}
		if i += len(found); strings.HasPrefix(found, "import") {
			at = i
		}
	}
}
