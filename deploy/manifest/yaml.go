package manifest

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// readYAML reads one YAML document. An alias is a copy of what it names, so that aliases of aliases meet the bound of
// all values.
func (d *document) readYAML() (*node, error) {
	if err := d.checkText(); err != nil {
		return nil, err
	}
	r := &yamlReader{doc: d}
	for i := range d.text {
		if i == 0 || d.text[i-1] == '\n' {
			r.lines = append(r.lines, int64(i))
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(d.text))
	var root, more yaml.Node
	if err := dec.Decode(&root); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, d.fail(0, "%s is empty", d.noun)
		}
		return nil, r.syntax(err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, r.syntax(err)
		}
		return nil, d.fail(r.offset(&more), "another document follows: %s is one document", d.noun)
	}
	return r.value(root.Content[0], 1)
}

type yamlReader struct {
	doc   *document
	lines []int64 // offset of each line
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax puts an error of the parser at its line. It has no columns.
func (r *yamlReader) syntax(err error) error {
	at := int64(-1)
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil && m[1] != "" {
		if line, err := strconv.Atoi(m[1]); err == nil && line >= 1 && line <= len(r.lines) {
			at = r.lines[line-1]
		}
	}
	return r.doc.fail(at, "this is not YAML: %s", yamlLine.ReplaceAllString(err.Error(), ""))
}

// offset is where n stands. A column counts characters.
func (r *yamlReader) offset(n *yaml.Node) int64 {
	if n.Line < 1 || n.Line > len(r.lines) {
		return 0
	}
	at := r.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRune(r.doc.text[at:])
		at += int64(size)
	}
	return at
}

func (r *yamlReader) value(y *yaml.Node, depth int) (*node, error) {
	at := r.offset(y)
	if y.Kind == yaml.AliasNode {
		n, err := r.value(y.Alias, depth+1) // a level deeper, so that an alias of what is around it ends
		if n != nil {
			n.at = at
		}
		return n, err
	}
	n, err := r.doc.node(null, at, depth)
	if err != nil {
		return nil, err
	}
	if tag := y.ShortTag(); y.Style&yaml.TaggedStyle != 0 || !strings.HasPrefix(tag, "!!") {
		return nil, r.doc.fail(at, "the tag %s: %s has no tags", shorten(y.Tag), r.doc.noun)
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = object
		return n, r.object(n, y, depth)
	case yaml.SequenceNode:
		n.kind = list
		for _, item := range y.Content {
			value, err := r.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, value)
		}
		return n, nil
	}
	n.scalar = y.Value
	switch y.ShortTag() {
	case "!!str", "!!timestamp": // a date is a text in every format
		n.kind = text
	case "!!int", "!!float":
		n.kind = number
	case "!!bool":
		n.kind, n.scalar = boolean, strings.ToLower(y.Value)
	case "!!null":
	default:
		return nil, r.doc.fail(at, "a value of the type %s: it is a string, a number, true, false, a list or an object", shorten(y.ShortTag()))
	}
	return n, nil
}

func (r *yamlReader) object(n *node, y *yaml.Node, depth int) error {
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, at := y.Content[i], r.offset(y.Content[i])
		switch {
		case key.ShortTag() == "!!merge":
			return r.doc.fail(at, "the merge key <<: write the keys out")
		case key.Kind != yaml.ScalarNode:
			return r.doc.fail(at, "a key is a string")
		}
		if err := r.doc.checkKey(n, key.Value, at); err != nil {
			return err
		}
		value, err := r.value(y.Content[i+1], depth+1)
		if err != nil {
			return err
		}
		n.put(key.Value, at, value)
	}
	return nil
}

// shorten keeps a long text out of a message.
func shorten(s string) string {
	if len(s) > maxShown {
		return strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	return s
}
