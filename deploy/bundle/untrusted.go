package bundle

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/internal/lib/sourcemap"
)

// Bounds of a bundle that somebody else has made.
const (
	// MaxSourceMap is the largest source map, bytes. It has the text of all sources.
	MaxSourceMap = 32 << 20
	// maxFile is the longest name of a bundle, bytes.
	maxFile = 255
)

// Check checks the code, the file name and the source map of a bundle that Build did not make in this process. A deploy
// checks the rest.
//
// What it lets pass costs each process that reads it time and memory in proportion to its size. Its names are one line
// of printable text, since stacks and logs show them.
func Check(b *Bundle) error {
	switch {
	case b.Code == "":
		return errors.New("the bundle has no code")
	case len(b.Code) > MaxBundle:
		return fmt.Errorf("the bundle has %d bytes of code: at most %d are allowed", len(b.Code), MaxBundle)
	case len(b.SourceMap) > MaxSourceMap:
		return fmt.Errorf("the source map has %d bytes: at most %d are allowed", len(b.SourceMap), MaxSourceMap)
	case !utf8.ValidString(b.Code) || !utf8.Valid(b.SourceMap):
		return errors.New("code and source map must be UTF-8")
	case len(b.File) > maxFile || !printable(b.File) || path.Ext(b.File) != ".js" || strings.ContainsAny(b.File, `/\:`):
		return fmt.Errorf("file %.80q: it is a name of at most %d bytes that ends in .js, of printable characters without /, : and \\", b.File, maxFile)
	}
	if len(b.SourceMap) == 0 {
		return nil
	}
	return sourcemap.Check(b.SourceMap)
}

// printable reports whether all of s is text of one line that a terminal shows as it is.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
