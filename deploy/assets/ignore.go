package assets

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ignoreFile says which files of the directory are not served, in the syntax of .gitignore. Frameworks put it there:
// what they build for the server may be among the files.
const ignoreFile = ".assetsignore"

// Bounds of that file.
const (
	maxIgnoreBytes = 64 << 10
	maxIgnoreLines = 1000
)

// ignores are the lines of an ignoreFile.
type ignores []ignore

// ignore is one line.
type ignore struct {
	path    *regexp.Regexp // of the path from the directory
	dirOnly bool
	not     bool // what an earlier line ignores is served after all
}

// readIgnores reads the file, if there is one.
func readIgnores(root *os.Root) (ignores, error) {
	if _, err := root.Lstat(ignoreFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file, size, err := open(root, ignoreFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if size > maxIgnoreBytes {
		return nil, &Error{File: ignoreFile, Text: fmt.Sprintf("it has %d bytes: at most %d are read", size, maxIgnoreBytes)}
	}
	text, err := io.ReadAll(io.LimitReader(file, maxIgnoreBytes))
	if err != nil {
		return nil, &Error{File: ignoreFile, Text: "it cannot be read"}
	}
	return parseIgnores(string(text))
}

func parseIgnores(text string) (list ignores, err error) {
	for i, line := range strings.Split(strings.TrimPrefix(text, "\ufeff"), "\n") {
		line = trimIgnore(strings.TrimSuffix(line, "\r"))
		if line == "" || line[0] == '#' {
			continue
		}
		if len(list) == maxIgnoreLines {
			return nil, &Error{ignoreFile, i + 1, 1, fmt.Sprintf("there are more than %d lines", maxIgnoreLines)}
		}
		one, err := parseIgnore(line)
		if err != nil {
			return nil, &Error{ignoreFile, i + 1, 1, fmt.Sprintf("%.100q is no pattern as in a .gitignore", line)}
		}
		list = append(list, one)
	}
	return list, nil
}

// trimIgnore removes spaces at the end, but not one behind a backslash.
func trimIgnore(line string) string {
	trimmed := strings.TrimRight(line, " \t")
	if strings.HasSuffix(trimmed, `\`) && len(trimmed) < len(line) {
		return trimmed + " "
	}
	return trimmed
}

func parseIgnore(line string) (one ignore, err error) {
	line, one.not = strings.CutPrefix(line, "!")
	line, one.dirOnly = strings.CutSuffix(line, "/")
	// A pattern with a slash begins at the directory. One without is a name at any depth.
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return one, errors.New("it names nothing")
	}
	expr := ""
	if !anchored {
		expr = "(?:.*/)?"
	}
	for line != "" {
		var part string
		switch {
		case strings.HasPrefix(line, "**/"):
			part, line = "(?:.*/)?", line[3:]
		case line == "**":
			part, line = ".+", ""
		case line[0] == '*':
			part, line = "[^/]*", strings.TrimLeft(line, "*")
		case line[0] == '?':
			part, line = "[^/]", line[1:]
		case line[0] == '[':
			part, line, err = ignoreClass(line)
		case line[0] == '\\' && len(line) > 1:
			line = line[1:]
			fallthrough
		default:
			_, n := utf8.DecodeRuneInString(line)
			part, line = regexp.QuoteMeta(line[:n]), line[n:]
		}
		if err != nil {
			return one, err
		}
		expr += part
	}
	// Wrangler does not tell upper from lower case in this file.
	one.path, err = regexp.Compile("(?is)^" + expr + "$")
	return one, err
}

// ignoreClass takes characters in brackets from the front of line.
func ignoreClass(line string) (expr, rest string, err error) {
	body, negated := strings.CutPrefix(line[1:], "!")
	if !negated {
		body, negated = strings.CutPrefix(body, "^")
	}
	var inside strings.Builder
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == ']' && i > 0:
			if negated {
				return "[^/" + inside.String() + "]", body[i+1:], nil
			}
			return "[" + inside.String() + "]", body[i+1:], nil
		case c == '-' && i > 0 && i+1 < len(body) && body[i+1] != ']':
			inside.WriteByte('-')
		case c == '\\' && i+1 < len(body):
			i++
			inside.WriteString(regexp.QuoteMeta(body[i : i+1]))
		case strings.IndexByte(`\]^[-`, c) >= 0:
			inside.WriteString(`\` + string(c))
		default:
			inside.WriteByte(c)
		}
	}
	return "", "", errors.New("the bracket is not closed")
}

// match reports whether a path is ignored. A path below an ignored directory is not asked for.
func (list ignores) match(path string, isDir bool) (ignored bool) {
	for _, one := range list {
		if ignored == one.not && (isDir || !one.dirOnly) && one.path.MatchString(path) {
			ignored = !one.not
		}
	}
	return ignored
}
