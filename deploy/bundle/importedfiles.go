package bundle

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

// importedFiles says by extension what an import of a file that is no code gives.
type importedFiles map[string]manifest.FileKind

// alwaysImported are the files that need no rule.
var alwaysImported = importedFiles{
	".txt": manifest.Text, ".html": manifest.Text, ".md": manifest.Text, ".css": manifest.Text, ".csv": manifest.Text,
	".sql": manifest.Text, ".bin": manifest.Data,
}

// with adds what the rules of a manifest say.
func (f importedFiles) with(rules map[string]manifest.FileKind) importedFiles {
	all := maps.Clone(f)
	maps.Copy(all, rules)
	return all
}

func (f importedFiles) loaders() map[string]api.Loader {
	all := map[string]api.Loader{}
	for extension, kind := range f {
		if kind == manifest.CompiledWasm {
			continue
		}
		if all[extension] = api.LoaderText; kind == manifest.Data {
			all[extension] = api.LoaderBinary
		}
	}
	return all
}

// data makes a module with an ArrayBuffer of each file that is data. esbuild alone makes a Uint8Array of it.
func (f importedFiles) data() api.Plugin {
	var endings []string
	for _, extension := range slices.Sorted(maps.Keys(f)) {
		if f[extension] == manifest.Data {
			endings = append(endings, regexp.QuoteMeta(extension))
		}
	}
	filter := "(" + strings.Join(endings, "|") + ")$"
	return api.Plugin{Name: "pinwheel data", Setup: func(b api.PluginBuild) {
		b.OnLoad(api.OnLoadOptions{Filter: filter, Namespace: "file"}, bufferOf)
	}}
}

func bufferOf(a api.OnLoadArgs) (r api.OnLoadResult, err error) {
	if len(a.With) > 0 {
		return r, nil
	}
	text := fmt.Sprintf("import bytes from %s with { type: \"bytes\" };\nexport default bytes.buffer;\n",
		strconv.QuoteToASCII(a.Path))
	r.Contents, r.Loader = &text, api.LoaderJS
	return r, nil
}
