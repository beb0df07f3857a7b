package deploy

import (
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

// CheckBundle checks the code, the file name and the source map of a bundle that Build did not make in this process.
// Deploy checks the rest. The error is an *InvalidError.
//
// What it lets pass costs each process that reads it time and memory in proportion to its size. Its names are one line
// of printable text, since stacks and logs show them.
func CheckBundle(b *Bundle) error {
	fail := func(format string, args ...any) error { return &InvalidError{fmt.Errorf(format, args...)} }
	switch {
	case b.Code == "":
		return fail("the bundle has no code")
	case len(b.Code) > MaxBundle:
		return fail("the bundle has %d bytes of code: at most %d are allowed", len(b.Code), MaxBundle)
	case len(b.SourceMap) > MaxSourceMap:
		return fail("the source map has %d bytes: at most %d are allowed", len(b.SourceMap), MaxSourceMap)
	case !utf8.ValidString(b.Code) || !utf8.Valid(b.SourceMap):
		return fail("code and source map must be UTF-8")
	case len(b.File) > maxFile || !printable(b.File) || path.Ext(b.File) != ".js" || strings.ContainsAny(b.File, `/\:`):
		return fail("file %.80q: it is a name of at most %d bytes that ends in .js, of printable characters without / \\ and :", b.File, maxFile)
	}
	if len(b.SourceMap) == 0 {
		return nil
	}
	if err := sourcemap.Check(b.SourceMap); err != nil {
		return &InvalidError{err}
	}
	return nil
}

// printable reports whether all of s is text of one line that a terminal shows as it is.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
