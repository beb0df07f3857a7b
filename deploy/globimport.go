package deploy

import (
	"path/filepath"
	"regexp"
)

// globStart is the beginning of an import() or require() of a path that is put together at run time, for which esbuild takes all files that may be meant.
var globStart = regexp.MustCompile("(?:import|require)\\s*\\(\\s*(?:\"(\\.\\.?/[^\"\\\\\n]*)\"\\s*\\+|'(\\.\\.?/[^'\\\\\n]*)'\\s*\\+|`(\\.\\.?/[^`$\\\\]*)\\$\\{)")

// globBeyond is the beginning of such a path that leads out of the project, from code in dir; "" when there is none. It spares esbuild the search through
// what is there: none of it would be read.
func (l *loading) globBeyond(text []byte, dir string) string {
	for _, m := range globStart.FindAllSubmatch(text, -1) {
		for _, start := range m[1:] {
			if len(start) > 0 && l.treeOf(filepath.Join(dir, filepath.Dir(string(start)+"x"))) == "" {
				return string(start)
			}
		}
	}
	return ""
}
