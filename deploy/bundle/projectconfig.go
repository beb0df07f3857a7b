package bundle

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// configFiles are the files that esbuild itself reads in each directory that it visits.
var configFiles = []string{"package.json", "tsconfig.json", "jsconfig.json", ".pnp.data.json", ".pnp.cjs", ".pnp.js"}

// maxEntries is the most files and directories of a project without those below node_modules.
const maxEntries = 200_000

// checkConfigs refuses a project in which a configuration file must not be read, or makes esbuild read such a file. It
// does so before esbuild starts, because a device instead of a file would never end.
func (p *project) checkConfigs() error {
	if p.open {
		return nil
	}
	faults := &SourceError{}
	for _, tree := range p.trees[:p.own] {
		n := 0
		err := p.walk(tree, &n, func(path string, err error) {
			rel, _ := filepath.Rel(tree, path)
			faults.Diagnostics = append(faults.Diagnostics, Diagnostic{File: rel, Text: err.Error()})
		})
		if err != nil {
			return err
		}
	}
	if len(faults.Diagnostics) > 0 {
		return faults
	}
	return nil
}

// walk checks the configuration files of a tree, except those of packages, and calls refused for each that is refused.
func (p *project) walk(tree string, n *int, refused func(path string, err error)) error {
	return filepath.WalkDir(tree, func(path string, d fs.DirEntry, err error) error {
		if *n++; *n > maxEntries {
			return fmt.Errorf("the project %s has more than %d files: --root DIR names a smaller one", p.named, maxEntries)
		}
		switch {
		case err != nil:
			return nil // a file that cannot be found cannot be read either
		case d.IsDir() && d.Name() == "node_modules" && path != tree:
			return fs.SkipDir
		case d.IsDir() || !slices.Contains(configFiles, d.Name()):
			return nil
		}
		if err = p.check(path); err == nil && strings.HasSuffix(d.Name(), "sconfig.json") {
			err = p.checkExtends(path, map[string]bool{})
		}
		if err != nil {
			refused(path, err)
		}
		return nil
	})
}

// checkExtends checks the files that the tsconfig at path extends.
func (p *project) checkExtends(path string, seen map[string]bool) error {
	real, err := realPath(path)
	if err != nil || seen[real] {
		return nil
	}
	seen[real] = true
	text, err := p.read(real, maxConfig)
	if err != nil {
		return err
	}
	for _, base := range valuesOfKey(text, "extends") {
		for _, candidate := range p.extended(filepath.Dir(real), base) {
			if p.treeOf(candidate) == "" && !isPackagePath(base) { // because of its name alone
				return fmt.Errorf("extends %q: %w", base, p.outside())
			}
			if err := p.check(candidate); err != nil {
				return fmt.Errorf("extends %q: %w", base, err)
			}
			if isFile(candidate) && p.treeOf(candidate) != "" {
				if err := p.checkExtends(candidate, seen); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func isPackagePath(path string) bool {
	return !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "./") && !strings.HasPrefix(path, "../") &&
		path != "." && path != ".."
}

// extended are the files that a tsconfig in dir may mean by base.
func (p *project) extended(dir, base string) (files []string) {
	add := func(path string) {
		files = append(files, path, path+".json", filepath.Join(path, "tsconfig.json"))
	}
	switch {
	case filepath.IsAbs(base):
		add(filepath.Clean(base))
	case !isPackagePath(base):
		add(filepath.Join(dir, base))
	default:
		for d := dir; ; d = filepath.Dir(d) {
			add(filepath.Join(d, "node_modules", base))
			pkg := filepath.Join(d, "node_modules", packageName(base))
			// Its package.json may name the file: add all files that it names.
			if text, err := p.read(filepath.Join(pkg, "package.json"), maxConfig); err == nil {
				for _, s := range stringsOf(text) {
					if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "/") || strings.HasSuffix(s, ".json") {
						add(filepath.Join(pkg, s))
					}
				}
			}
			if d == filepath.Dir(d) {
				break
			}
		}
	}
	return files
}

// packageName is the package of an import such as @scope/name/file.
func packageName(path string) string {
	parts := strings.SplitN(path, "/", 3)
	if strings.HasPrefix(path, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// checkPackage checks, once, the configuration files of a package that a file in dir imports.
func (l *loading) checkPackage(dir, path string) (err error) {
	name := packageName(path)
	for d := dir; ; d = filepath.Dir(d) {
		pkg := filepath.Join(d, "node_modules", name)
		l.mu.Lock()
		known := l.checked[pkg]
		l.checked[pkg] = true
		l.mu.Unlock()
		if real, found := filepath.EvalSymlinks(pkg); !known && found == nil && l.treeOf(real) != "" {
			n := 0
			// walk stops in a package with very many files: the rest is not worth the time.
			_ = l.walk(real, &n, func(_ string, why error) { err = why })
		}
		if err != nil || d == filepath.Dir(d) {
			return err
		}
	}
}

// keysOf are the keys of a JSON object.
func keysOf(text []byte) (keys []string) {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(text, &object) // another value than an object has no keys
	for key, value := range object {
		if string(value) != "null" {
			keys = append(keys, key)
		}
	}
	return keys
}

// jsonToken is a string in a JSON text, or a character outside of strings, comments and spaces.
type jsonToken struct {
	text string
	mark byte // 0 = it is a string
	at   int  // offset
}

// jsonTokens reads JSON more leniently than esbuild: comments, commas and other errors make no difference. Each string
// for esbuild is a string here.
func jsonTokens(text []byte) (tokens []jsonToken) {
	for i := 0; i < len(text); {
		switch rest := string(text[i:min(i+2, len(text))]); {
		case rest == "//":
			i += lineLength(text[i:])
		case rest == "/*":
			_, after, _ := strings.Cut(string(text[i+2:]), "*/")
			i = len(text) - len(after)
		case text[i] == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			end = min(end, len(text))
			var s string
			if json.Unmarshal([]byte(`"`+string(text[i+1:end])+`"`), &s) != nil {
				s = string(text[i+1 : end])
			}
			tokens = append(tokens, jsonToken{text: s, at: i})
			i = end + 1
		default:
			if !strings.ContainsRune(" \t\r\n", rune(text[i])) {
				tokens = append(tokens, jsonToken{mark: text[i], at: i})
			}
			i++
		}
	}
	return tokens
}

// lineLength is the length of the line as esbuild sees it.
func lineLength(text []byte) int {
	if i := strings.IndexAny(string(text), "\n\r\u2028\u2029"); i >= 0 {
		return i
	}
	return len(text)
}

// stringsOf are all strings of a JSON text, keys included.
func stringsOf(text []byte) (all []string) {
	for _, t := range jsonTokens(text) {
		if t.mark == 0 {
			all = append(all, t.text)
		}
	}
	return all
}

// valuesOfKey are the strings that are values of a key at any depth, alone or in a list.
func valuesOfKey(text []byte, key string) (values []string) {
	tokens := jsonTokens(text)
	for i, t := range tokens {
		if t.mark != 0 || t.text != key || i+1 >= len(tokens) || tokens[i+1].mark != ':' {
			continue
		}
		list := i+2 < len(tokens) && tokens[i+2].mark == '['
		for _, v := range tokens[i+2:] {
			if v.mark == 0 {
				values = append(values, v.text)
			}
			if !list || v.mark == ']' {
				break
			}
		}
	}
	return values
}
