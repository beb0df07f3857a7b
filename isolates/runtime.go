package isolates

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

//go:embed js/order.txt js/*/*.js
var runtimeFS embed.FS

// runtimePrefix begins the names of the runtime's files in stacks; such frames are not shown to authors.
const runtimePrefix = "pinwheel:runtime/"

// startRuntime starts V8 and makes the snapshot with the runtime in it, once per process.
var startRuntime = sync.OnceValue(func() error {
	if err := v8x.Start(); err != nil {
		return err
	}
	files, err := runtimeFiles()
	if err != nil {
		return err
	}
	return v8x.Snapshot(files, func(c *v8x.Context) { warmUp(c, func(v8x.Result) {}) })
})

// runtimeFiles reads the embedded runtime in the order of js/order.txt.
func runtimeFiles() ([]v8x.File, error) {
	names, err := runtimeOrder()
	if err != nil {
		return nil, fmt.Errorf("isolates: runtime: %w", err)
	}
	var files []v8x.File
	for _, name := range names {
		text, err := fs.ReadFile(runtimeFS, "js/"+name)
		if err != nil {
			return nil, fmt.Errorf("isolates: runtime: %w", err)
		}
		files = append(files, v8x.File{Name: runtimePrefix + name, Text: ascii(string(text))})
	}
	return files, nil
}

// runtimeOrder reads js/order.txt: the path of a file on each line, or a folder with /* for its files that no line
// before names, by name.
func runtimeOrder() (names []string, err error) {
	order, err := fs.ReadFile(runtimeFS, "js/order.txt")
	if err != nil {
		return nil, err
	}
	for line := range strings.FieldsSeq(string(order)) {
		folder, all := strings.CutSuffix(line, "/*")
		if !all {
			names = append(names, line)
			continue
		}
		entries, err := fs.ReadDir(runtimeFS, "js/"+folder)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if name := folder + "/" + e.Name(); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// ascii replaces other characters by JavaScript's escapes. An escape means the same in all places where the runtime has
// such characters: strings, regular expressions and comments. V8 keeps ASCII texts outside its heaps.
func ascii(text string) string {
	var b strings.Builder
	for _, c := range text {
		if c < utf8.RuneSelf {
			b.WriteByte(byte(c))
		} else {
			for _, half := range utf16.AppendRune(nil, c) {
				fmt.Fprintf(&b, `\u%04x`, half)
			}
		}
	}
	return b.String()
}
