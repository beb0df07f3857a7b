package sourcemap

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a source map from outside. esbuild makes about one mapping for ten bytes of code.
const (
	maxMappings = 2_000_000 // Parse keeps 24 bytes of each
	maxSources  = 20_000
	maxSource   = 1024 // bytes of a name
)

// outside is what Check reads of a source map. encoding/json refuses values that are nested more than 10000 times.
type outside struct {
	Version    int             `json:"version"`
	SourceRoot string          `json:"sourceRoot"`
	Sources    []string        `json:"sources"`
	Mappings   string          `json:"mappings"`
	Sections   json.RawMessage `json:"sections"`
}

// Check refuses a source map from outside that Parse cannot read, whose parsed form would be too large, or whose names
// are not one line of printable text each. Its cost is linear in the size.
func Check(sourceMap []byte) error {
	var m outside
	if err := json.Unmarshal(sourceMap, &m); err != nil {
		return fmt.Errorf("source map: %w", err)
	}
	switch n := strings.Count(m.Mappings, ",") + strings.Count(m.Mappings, ";"); {
	case len(m.Sections) > 0:
		return errors.New("source map: sections are not allowed")
	case m.SourceRoot != "":
		return errors.New("source map: sourceRoot is not allowed")
	case n > maxMappings:
		return fmt.Errorf("source map: it has more than %d mappings", maxMappings)
	case len(m.Sources) > maxSources:
		return fmt.Errorf("source map: it has %d sources: at most %d are allowed", len(m.Sources), maxSources)
	}
	for i, name := range m.Sources {
		if len(name) > maxSource || !utf8.ValidString(name) ||
			strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return fmt.Errorf("source map: sources[%d] %.80q: it is at most %d bytes of printable characters", i, name, maxSource)
		}
	}
	if _, err := Parse(sourceMap); err != nil {
		return err
	}
	return nil
}
