package main_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/wasm"
)

// The page has each bound of modules of WebAssembly.
func TestReferenceWasm(t *testing.T) {
	bounds := []struct {
		name string
		is   int
	}{
		{"MaxModule", wasm.MaxModule}, {"MaxWorkFunction", wasm.MaxWorkFunction}, {"MaxWorkModule", wasm.MaxWorkModule},
		{"MaxBody", wasm.MaxBody}, {"MaxLocals", wasm.MaxLocals}, {"MaxNesting", wasm.MaxNesting},
		{"MaxSignature", wasm.MaxSignature}, {"MaxName", wasm.MaxName}, {"MaxTypes", wasm.MaxTypes},
		{"MaxTypeBytes", wasm.MaxTypeBytes}, {"MaxFields", wasm.MaxFields}, {"MaxFixedArray", wasm.MaxFixedArray},
		{"MaxFunctions", wasm.MaxFunctions}, {"MaxGlobals", wasm.MaxGlobals}, {"MaxTags", wasm.MaxTags},
		{"MaxTables", wasm.MaxTables}, {"MaxTable", wasm.MaxTable}, {"MaxMemory", wasm.MaxMemory},
		{"MaxImports", wasm.MaxImports}, {"MaxExports", wasm.MaxExports}, {"MaxElementSegments", wasm.MaxElementSegments},
		{"MaxElements", wasm.MaxElements}, {"MaxDataSegments", wasm.MaxDataSegments},
		{"MaxCustomSections", wasm.MaxCustomSections},
	}
	var body [][]string
	var names []string
	for _, b := range bounds {
		names = append(names, b.name)
		body = append(body, []string{"`" + b.name + "`", fmt.Sprint(b.is)})
	}
	declared := regexp.MustCompile(`(?m)^\s(Max\w+)\s+=`).FindAllStringSubmatch(read(t, "isolates/wasm/limits.go"), -1)
	require.Len(t, declared, len(names))
	for _, d := range declared {
		require.Contains(t, names, d[1])
	}
	generatedTable(t, "docs/reference/wasm.md", "bounds", []string{"bound", "is", "of"}, body)
}
