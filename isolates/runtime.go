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

// runtimeFiles reads the embedded runtime as js/order.txt has it.
func runtimeFiles() ([]v8x.File, error) {
	files, err := runtimeOrder()
	if err != nil {
		return nil, fmt.Errorf("isolates: runtime: %w", err)
	}
	for i, f := range files {
		text, err := fs.ReadFile(runtimeFS, "js/"+f.Name)
		if err != nil {
			return nil, fmt.Errorf("isolates: runtime: %w", err)
		}
		files[i].Name, files[i].Text = runtimePrefix+f.Name, ascii(string(text))
	}
	return files, nil
}

// runtimeOrder reads js/order.txt. A line is the path of a file, "FEATURE:" and the paths of files, or "FOLDER/*:", by
// which each file of the folder that no other line names is a feature "FOLDER/NAME". # begins a comment.
func runtimeOrder() (files []v8x.File, err error) {
	order, err := fs.ReadFile(runtimeFS, "js/order.txt")
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
			entries, err := fs.ReadDir(runtimeFS, "js/"+folder)
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

// warmUp runs events of each kind in a context that is discarded, and passes the result of each turn to show. Nothing
// depends on the results. Code that is not compiled here is compiled later.
func warmUp(c *v8x.Context, show func(v8x.Result)) {
	var call v8x.Call
	turn := func(call *v8x.Call, body []byte) { show(c.Call(call.Bytes(), body)) }
	turn(call.Reset(opEnv).Strings([]string{"NAME", "value"}).Strings([]string{"FLAGS", "{}"}).
		Strings([]string{"queues", "JOBS", "jobs"}).Bool(false).Bool(false), nil)
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
		turn(next(opFetchEvent).String("POST").String("http://warmup.invalid/"+path+"?a=1&b=2").Strings(headers).Content(),
			body)
	}
	turn(next(opFetchEvent).String("GET").String("http://warmup.invalid/").Null().Null(), nil)
	turn(next(opTaskEvent).String("1").Number(1).Strings(headers).Content(), body)
	turn(next(opScheduledEvent).String("2").Number(1).Strings(nil).Content().Number(0).String("* * * * *"), nil)
	turn(call.Reset(opTimers).Numbers(1), nil)
}
