package bundle

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

const emitMetadata = "emitDecoratorMetadata"

// metadataWarnings warn of the option emitDecoratorMetadata in the tsconfig.json that holds for files in TypeScript:
// esbuild leaves types out without looking at them, so code that asks for the types of what is decorated finds none.
func (p *project) metadataWarnings(e entry, inputs []string) (warnings []Diagnostic) {
	seen := map[string]bool{}
	for _, input := range inputs {
		if !strings.Contains(filepath.Ext(input), "ts") || strings.Contains(input, "/node_modules/") {
			continue
		}
		for d := filepath.Dir(input); d != filepath.Dir(d); d = filepath.Dir(d) {
			path := filepath.Join(d, "tsconfig.json")
			if !isFile(path) {
				continue
			}
			if !seen[path] {
				seen[path] = true
				found, _ := p.metadataIn(e, path, map[string]bool{})
				warnings = append(warnings, found...)
			}
			break
		}
	}
	return warnings
}

// metadataIn looks at a tsconfig.json, and then at those that it extends, of which the last counts that says something.
// said reports whether one does. looked has those that say nothing.
func (p *project) metadataIn(e entry, path string, looked map[string]bool) (warnings []Diagnostic, said bool) {
	if looked[path] {
		return nil, false
	}
	looked[path] = true
	text, err := p.read(path, maxConfig)
	if err != nil {
		return nil, false // esbuild says why, if it matters
	}
	tokens := jsonTokens(text)
	for i, t := range tokens {
		if t.mark != 0 || t.text != emitMetadata || i+2 >= len(tokens) || tokens[i+1].mark != ':' {
			continue
		}
		if tokens[i+2].mark != 't' { // false
			return nil, true
		}
		name := path
		if rel, err := filepath.Rel(filepath.Dir(e.abs), path); err == nil {
			name = filepath.Join(filepath.Dir(e.path), rel)
		}
		return manifest.Fault(name, text, int64(t.at), emitMetadata+" has no effect: the types of what is decorated are not "+
			"in the bundle. A library that reads them needs them in its decorators, or code that another compiler made "+
			"with them").Diagnostics, true
	}
	for _, base := range slices.Backward(valuesOfKey(text, "extends")) {
		for _, candidate := range p.extended(filepath.Dir(path), base) {
			if !isFile(candidate) {
				continue
			}
			if warnings, said = p.metadataIn(e, candidate, looked); said {
				return warnings, true
			}
		}
	}
	return nil, false
}
