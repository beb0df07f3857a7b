package compat_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/wasm"
)

// inText is a WebAssembly module in the source of a JavaScript module.
var inText = regexp.MustCompile(`AGFzbQE[A-Za-z0-9+/]+=*`)

// modulesIn returns the WebAssembly modules of a package: its files, and those in its JavaScript.
func modulesIn(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	modules := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) != ".wasm" && filepath.Ext(path) != ".js" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if filepath.Ext(path) == ".wasm" {
			modules[name] = text
			return nil
		}
		for i, found := range inText.FindAll(text, -1) {
			module, err := base64.StdEncoding.DecodeString(string(found))
			if err != nil {
				return fmt.Errorf("%s: module %d: %w", name, i, err)
			}
			modules[fmt.Sprintf("%s, module %d", name, i)] = module
		}
		return nil
	}))
	return modules
}

// Modules of packages pass, and none is close to a bound but the largest of all, lightningcss, in the work of a
// function.
func TestWebAssemblyOfPackages(t *testing.T) {
	t.Parallel()
	const dir = "testdata/wasm"
	npm, err := exec.LookPath("npm")
	if err != nil {
		err = errors.New("npm is not installed: install Node.js, 20 or later")
	}
	var kept string
	if err == nil {
		kept, err = keptPackages(npm, dir)
	}
	needed(t, err)
	var manifest struct{ Dependencies map[string]string }
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &manifest))
	require.Len(t, manifest.Dependencies, 13)
	var most wasm.Info
	all, logged := 0, map[string]bool{}
	for name, version := range manifest.Dependencies {
		modules := modulesIn(t, filepath.Join(kept, "node_modules", name))
		assert.NotEmpty(t, modules, name)
		for file, module := range modules {
			info, err := wasm.Check(module)
			if !assert.NoError(t, err, "%s %s %s", name, version, file) {
				continue
			}
			all++
			if !logged[string(module)] {
				logged[string(module)] = true
				t.Logf("%s %s %s: %d bytes, %+v, memory %+v", name, version, file, len(module), info, *info.Memory)
			}
			most.Work, most.WorkFunction = max(most.Work, info.Work), max(most.WorkFunction, info.WorkFunction)
			most.Functions, most.Types = max(most.Functions, info.Functions), max(most.Types, info.Types)
			most.TypeBytes, most.Globals = max(most.TypeBytes, info.TypeBytes), max(most.Globals, info.Globals)
			most.TableEntries = max(most.TableEntries, info.TableEntries)
			most.Elements = max(most.Elements, info.Elements)
			most.Imports, most.Exports = max(most.Imports, info.Imports), max(most.Exports, info.Exports)
		}
	}
	require.Greater(t, all, 30)
	t.Logf("%d modules, %d of them different; the most: %+v", all, len(logged), most)
	require.Less(t, most.Work, int64(wasm.MaxWorkModule)*3/4)
	require.Less(t, most.Functions, wasm.MaxFunctions/10)
	require.Less(t, most.Types, wasm.MaxTypes/50)
	require.Less(t, most.TypeBytes, wasm.MaxTypeBytes/100)
	require.Less(t, most.Globals, wasm.MaxGlobals/100)
	require.Less(t, most.TableEntries, int64(wasm.MaxTable/50))
	require.Less(t, most.Elements, wasm.MaxElements/50)
	require.Less(t, most.Imports, wasm.MaxImports/50)
	require.Less(t, most.Exports, wasm.MaxExports/50)
}

// specTests is a module of Go with the tests of WebAssembly's specification, as files.
const specTests = "github.com/tetratelabs/wazero@v1.9.0"

// specReasons are why valid modules of the specification's tests are refused, and how many of them. Malformed ones
// that pass have indices of memories in place of a zero of old, or no count of data segments: V8 refuses what has no
// meaning.
var specReasons = map[string]int{
	"valid, but refused: atomics (opcode 0xfe) are not supported":                             3,
	"valid, but refused: pages of a memory that threads share (flags 0x03) are not supported": 2,
	"valid, but refused: parameters and results of a function: 101, at most 100 allowed":      1,
	"valid, but refused: entries of all tables at most: 4294967295, at most 1000000 allowed":  1,
	"malformed, but passes: zero byte expected":                                               10,
	"malformed, but passes: zero flag expected":                                               11,
	"malformed, but passes: data count section required":                                      2,
}

// The modules of the specification's tests pass, or are refused for reasons that are listed here. No module passes
// that has lengths, numbers or an order that the specification calls malformed.
func TestWebAssemblySpecification(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", specTests)
	cmd.Dir = t.TempDir()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go mod download %s: %w\n%s%s", specTests, err, out, stderr.String())
	}
	needed(t, err)
	var got struct{ Dir, Sum string }
	require.NoError(t, json.Unmarshal(out, &got))
	require.Equal(t, "h1:IcZ56OuxrtaEz8UYNRHBrUa9bYeX9oVY93KspZZBf/I=", got.Sum)
	suites, err := filepath.Glob(filepath.Join(got.Dir, "internal/integration_test/spectest/*/testdata/*.json"))
	require.NoError(t, err)
	require.Greater(t, len(suites), 200)
	valid, malformed, invalid, refused, reasons := 0, 0, 0, 0, map[string]int{}
	for _, suite := range suites {
		var script struct {
			Commands []struct {
				Type, Filename, Text string
				Line                 int
				ModuleType           string `json:"module_type"`
			}
		}
		text, err := os.ReadFile(suite)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &script))
		for _, c := range script.Commands {
			if filepath.Ext(c.Filename) != ".wasm" {
				continue
			}
			module, err := os.ReadFile(filepath.Join(filepath.Dir(suite), c.Filename))
			require.NoError(t, err)
			_, err = wasm.Check(module)
			switch c.Type {
			case "assert_invalid":
				invalid++
			case "assert_malformed":
				malformed++
				if err == nil {
					reasons["malformed, but passes: "+c.Text]++
				}
			default:
				valid++
				if err != nil {
					refused++
					_, reason, _ := strings.Cut(err.Error(), ": ")
					reasons["valid, but refused: "+reason]++
				}
			}
		}
	}
	t.Logf("%d valid modules, %d refused; %d malformed; %d invalid", valid, refused, malformed, invalid)
	require.Greater(t, valid, 2000)
	require.Greater(t, malformed, 1000)
	require.Equal(t, specReasons, reasons)
}
