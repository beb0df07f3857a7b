package manifest

import (
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// maxTOML is the longest text in TOML, bytes: its decoder compares each key with those before it.
const maxTOML = 128 << 10

// readTOML reads a TOML document. It is decoded first, because only the decoder finds keys and tables that stand twice.
func (d *document) readTOML() (*node, error) {
	if err := d.checkText(); err != nil {
		return nil, err
	}
	if len(d.text) > maxTOML {
		return nil, d.fail(-1, "%s has %d bytes: in TOML at most %d are allowed", d.noun, len(d.text), maxTOML)
	}
	if err := d.checkBrackets(); err != nil {
		return nil, err
	}
	var whole map[string]any
	if err := toml.Unmarshal(d.text, &whole); err != nil {
		return nil, d.tomlSyntax(err)
	}
	root, err := d.node(object, 0, 1)
	if err != nil {
		return nil, err
	}
	r := &tomlReader{doc: d, root: root}
	r.parser.Reset(d.text)
	table, depth := root, 1
	for r.parser.NextExpression() {
		e := r.parser.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, depth, err = r.table(e)
		case unstable.KeyValue:
			err = r.keyValue(table, e, depth)
		}
		if err != nil {
			return nil, err
		}
	}
	return root, r.parser.Error()
}

// checkBrackets refuses lists in lists that would be too deep for the parser, which calls itself for each.
func (d *document) checkBrackets() error {
	depth := 0
	for i, c := range d.text {
		switch c {
		case '[', '{':
			if depth++; depth > 4*maxDepth {
				return d.fail(int64(i), "there are more than %d open brackets", 4*maxDepth)
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return nil
}

func (d *document) tomlSyntax(err error) error {
	var de *toml.DecodeError
	if !errors.As(err, &de) {
		return d.fail(-1, "this is not TOML: %s", strings.TrimPrefix(err.Error(), "toml: "))
	}
	row, column := de.Position()
	at := 0
	for range row - 1 {
		at += strings.IndexByte(string(d.text[at:]), '\n') + 1
	}
	return d.fail(int64(min(len(d.text), at+column-1)), "this is not TOML: %s", strings.TrimPrefix(de.Error(), "toml: "))
}

type tomlReader struct {
	doc    *document
	parser unstable.Parser
	root   *node
}

// into is the object that the keys of it but the last lead to. It makes those that are missing.
func (r *tomlReader) into(n *node, keys []*unstable.Node, depth int) (*node, int, error) {
	for _, k := range keys {
		depth++
		next := n.member(string(k.Data))
		if next == nil {
			var err error
			if next, err = r.doc.node(object, int64(k.Raw.Offset), depth); err != nil {
				return nil, 0, err
			}
			if err = r.add(n, k, next); err != nil {
				return nil, 0, err
			}
		}
		if next.kind == list && len(next.items) > 0 { // of tables: the last one is meant
			next = next.items[len(next.items)-1]
			depth++
		}
		n = next
	}
	return n, depth, nil
}

func (r *tomlReader) add(n *node, k *unstable.Node, value *node) error {
	key, at := string(k.Data), int64(k.Raw.Offset)
	if err := r.doc.checkKey(n, key, at); err != nil {
		return err
	}
	n.put(key, at, value)
	return nil
}

func keysOf(e *unstable.Node) (keys []*unstable.Node) {
	for it := e.Key(); it.Next(); {
		keys = append(keys, it.Node())
	}
	return keys
}

// table is the table that a header in brackets begins.
func (r *tomlReader) table(e *unstable.Node) (*node, int, error) {
	keys := keysOf(e)
	if e.Kind == unstable.Table {
		return r.into(r.root, keys, 1)
	}
	last := keys[len(keys)-1]
	n, depth, err := r.into(r.root, keys[:len(keys)-1], 1)
	if err != nil {
		return nil, 0, err
	}
	tables := n.member(string(last.Data))
	if tables == nil {
		if tables, err = r.doc.node(list, int64(last.Raw.Offset), depth+1); err == nil {
			err = r.add(n, last, tables)
		}
		if err != nil {
			return nil, 0, err
		}
	}
	table, err := r.doc.node(object, int64(last.Raw.Offset), depth+2)
	if err != nil {
		return nil, 0, err
	}
	tables.items = append(tables.items, table)
	return table, depth + 2, nil
}

func (r *tomlReader) keyValue(n *node, e *unstable.Node, depth int) error {
	keys := keysOf(e)
	last := keys[len(keys)-1]
	n, depth, err := r.into(n, keys[:len(keys)-1], depth)
	if err != nil {
		return err
	}
	value, err := r.value(e.Value(), int64(last.Raw.Offset), depth+1)
	if err != nil {
		return err
	}
	return r.add(n, last, value)
}

// value makes the node of a value, at the place of its key: the parser does not say where each value stands.
func (r *tomlReader) value(v *unstable.Node, at int64, depth int) (*node, error) {
	if v.Raw.Length > 0 {
		at = int64(v.Raw.Offset)
	}
	n, err := r.doc.node(text, at, depth)
	if err != nil {
		return nil, err
	}
	n.scalar = string(v.Data)
	switch v.Kind {
	case unstable.Array:
		n.kind = list
		for it := v.Children(); it.Next(); {
			item, err := r.value(it.Node(), at, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	case unstable.InlineTable:
		n.kind = object
		for it := v.Children(); it.Next(); {
			if err := r.keyValue(n, it.Node(), depth); err != nil {
				return nil, err
			}
		}
	case unstable.Bool:
		n.kind = boolean
	case unstable.Integer:
		n.kind = number
		if whole, err := strconv.ParseInt(n.scalar, 0, 64); err == nil {
			n.scalar = strconv.FormatInt(whole, 10) // of any base
		}
	case unstable.Float:
		n.kind = number
	}
	return n, nil
}
