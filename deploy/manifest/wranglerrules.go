package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// FileKind is what an import of a file gives that is no code.
type FileKind string

// Kinds of files. Their names are wrangler's.
const (
	Text FileKind = "Text" // a string
	Data FileKind = "Data" // an ArrayBuffer

	CompiledWasm FileKind = "CompiledWasm" // a WebAssembly.Module
)

// wranglerRule says what an import of some files gives.
type wranglerRule struct {
	Type        string   `json:"type"`
	Globs       []string `json:"globs"`
	Fallthrough bool     `json:"fallthrough"` // a rule adds to those that hold anyway
}

// anyOf is a glob of all files with an extension.
var anyOf = regexp.MustCompile(`^(?:\*\*/)?\*(\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)$`)

// codeFiles are the extensions of files that are code, whatever a rule says.
var codeFiles = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".json", ".wasm"}

// wasmGlob is a glob of modules of WebAssembly, which need no rule.
var wasmGlob = regexp.MustCompile(`^(?:\*\*/)?\*\.wasm(?:\?module)?$`)

// wranglerRules keeps the rules for texts, data and WebAssembly. Those for code say what is so anyway.
func (m *Manifest) wranglerRules(rules []wranglerRule) error {
	for i, rule := range rules {
		path := fmt.Sprintf("rules[%d]", i)
		switch rule.Type {
		case "ESModule", "CommonJS":
			continue
		case string(Text), string(Data), string(CompiledWasm):
		default:
			return m.d.fail(m.d.place(path+".type"), "%s.type is %s: it is one of Text, Data, ESModule, CommonJS, CompiledWasm",
				path, strconv.Quote(shorten(rule.Type)))
		}
		for j, glob := range rule.Globs {
			at := fmt.Sprintf("%s.globs[%d]", path, j)
			match := anyOf.FindStringSubmatch(glob)
			switch {
			case rule.Type == string(CompiledWasm) && wasmGlob.MatchString(glob):
				continue
			case match == nil:
				return m.d.fail(m.d.place(at), "%s is %s: it is **/*.EXTENSION, for all files with that extension", at,
					strconv.Quote(shorten(glob)))
			case slices.Contains(codeFiles, match[1]):
				return m.d.fail(m.d.place(at), "%s is %s: a file with that extension is code", at, strconv.Quote(shorten(glob)))
			case m.Files == nil:
				m.Files = map[string]FileKind{}
			}
			if _, earlier := m.Files[match[1]]; !earlier { // of two rules, the first holds
				m.Files[match[1]] = FileKind(rule.Type)
			}
		}
	}
	return nil
}
