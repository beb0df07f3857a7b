package js

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

//go:embed order.txt */*.js
var text embed.FS

// Prefix begins the names of the runtime's files in stacks; such frames are not shown to authors.
const Prefix = "pinwheel:runtime/"

// BundlePrefix begins the name that V8 has of a worker's module. So a frame of the bundle differs from one that is
// mapped to the author's files already, whatever these are called.
const BundlePrefix = "bundle:"

// Start starts V8 with these compilers and makes the snapshot with the runtime in it, once per process. It returns an
// error when V8 was started with others.
func Start(with v8x.Compilers) error {
	if err := v8x.Start(with); err != nil {
		return err
	}
	return snapshot()
}

var snapshot = sync.OnceValue(func() error {
	files, err := Files()
	if err != nil {
		return err
	}
	return v8x.Snapshot(files, func(c *v8x.Context) { WarmUp(c, func(v8x.Result) {}) })
})

// Files reads the embedded runtime in the order of order.txt.
func Files() ([]v8x.File, error) {
	files, err := list()
	if err != nil {
		return nil, fmt.Errorf("isolates: runtime: %w", err)
	}
	for i, f := range files {
		source, err := text.ReadFile(f.Name)
		if err != nil {
			return nil, fmt.Errorf("isolates: runtime: %w", err)
		}
		files[i].Name, files[i].Text = Prefix+f.Name, ascii(string(source))
	}
	return files, nil
}

// list reads order.txt. A line is the path of a file, "FEATURE:" and the paths of files, or "FOLDER/*:", by
// which each file of the folder that no other line names is a feature "FOLDER/NAME". # begins a comment.
func list() (files []v8x.File, err error) {
	order, err := text.ReadFile("order.txt")
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	add := func(name, feature string) {
		named[name] = true
		files = append(files, v8x.File{Name: name, Feature: feature})
	}
	for line := range strings.Lines(string(order)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		feature, paths, ok := strings.Cut(line, ":")
		if !ok {
			feature, paths = "", line
		}
		for path := range strings.FieldsSeq(paths) {
			add(path, feature)
		}
		if folder, all := strings.CutSuffix(feature, "/*"); all {
			entries, err := text.ReadDir(folder)
			if err != nil {
				return nil, err
			}
			for _, e := range entries {
				if name := folder + "/" + e.Name(); !named[name] {
					add(name, strings.TrimSuffix(name, ".js"))
				}
			}
		}
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

// warmupWorker is a worker that does what most workers do. The parts of the runtime that it uses are in the snapshot as
// bytecode.
//
//go:embed warmup.js
var warmupWorker string

// WarmUp runs events of each kind in a context that is discarded, and passes the result of each turn to show. Nothing
// depends on the results. Code that is not compiled here is compiled later.
func WarmUp(c *v8x.Context, show func(v8x.Result)) {
	var call v8x.Call
	turn := func(call *v8x.Call, body []byte) { show(c.Call(call.Bytes(), body)) }
	turn(call.Reset(OpEnv).Strings([]string{"NAME", "value"}).Strings([]string{"FLAGS", "{}"}).
		Strings([]string{"queues", "JOBS", "jobs"}).Bool(false).Bool(false).String("blob"), nil)
	_, loaded := c.Module(v8x.Source{Name: "warmup.js", Text: warmupWorker})
	show(loaded)
	headers := []string{"content-type", "application/json", "accept", "*/*"}
	body := []byte(`{"name":"Ada"}`)
	id := 0.
	next := func(op int) *v8x.Call {
		id++
		return call.Reset(op).Number(id)
	}
	for _, path := range []string{"json", "text", "missing", "stream", "features"} {
		turn(next(OpFetchEvent).String("POST").String("http://warmup.invalid/"+path+"?a=1&b=2").Strings(headers).Content(),
			body)
	}
	turn(next(OpFetchEvent).String("GET").String("http://warmup.invalid/").Null().Null(), nil)
	turn(next(OpTaskEvent).String("1").Number(1).Strings(headers).Content(), body)
	turn(next(OpScheduledEvent).String("2").Number(1).Strings(nil).Content().Number(0).String("* * * * *"), nil)
	turn(call.Reset(OpTimers).Numbers(1), nil)
}
