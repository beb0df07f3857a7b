package deploy

import (
	"path/filepath"
	"regexp"
)

// globStart is the beginning of an import() or require() of a path that is computed at run time. esbuild bundles all
// files that may be meant.
var globStart = regexp.MustCompile("(?:import|require)\\s*\\(\\s*(?:\"(\\.\\.?/[^\"\\\\\n]*)\"\\s*\\+|'(\\.\\.?/[^'\\\\\n]*)'\\s*\\+|`(\\.\\.?/[^`$\\\\]*)\\$\\{)")

// globBeyond is the beginning of such a path in code in dir, if it leads out of the project; "" = no such path. So
// esbuild does not search there for files that it must not read.
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
