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

//go:embed js/*.js
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
	return v8x.Snapshot(files, func(c *v8x.Context) { rehearse(c, func(v8x.Result) {}) })
})

// runtimeFiles reads the embedded runtime in the order of its numbers.
func runtimeFiles() ([]v8x.File, error) {
	entries, err := fs.ReadDir(runtimeFS, "js") // sorted by name
	if err != nil {
		return nil, err
	}
	files := make([]v8x.File, len(entries))
	for i, e := range entries {
		text, err := fs.ReadFile(runtimeFS, "js/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("isolates: runtime: %w", err)
		}
		files[i] = v8x.File{Name: runtimePrefix + e.Name(), Text: ascii(string(text))}
	}
	return files, nil
}

// ascii writes other characters as JavaScript's escapes, which mean the same wherever the runtime has any: in strings,
// regular expressions and comments. V8 keeps texts in ASCII outside of its heaps.
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
