package isolates

import (
	"embed"
	"fmt"
	"io/fs"
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

// runtimeFiles reads the embedded runtime in the order of js/order.txt, a path on each line.
func runtimeFiles() ([]v8x.File, error) {
	order, err := fs.ReadFile(runtimeFS, "js/order.txt")
	if err != nil {
		return nil, fmt.Errorf("isolates: runtime: %w", err)
	}
	var files []v8x.File
	for name := range strings.FieldsSeq(string(order)) {
		text, err := fs.ReadFile(runtimeFS, "js/"+name)
		if err != nil {
			return nil, fmt.Errorf("isolates: runtime: %w", err)
		}
		files = append(files, v8x.File{Name: runtimePrefix + name, Text: ascii(string(text))})
	}
	return files, nil
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
