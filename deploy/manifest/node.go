package manifest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is the kind of a value.
type kind string

// The kinds, as messages name them.
const (
	object  kind = "an object"
	list    kind = "a list"
	text    kind = "a string"
	number  kind = "a number"
	boolean kind = "a boolean"
	null    kind = "null"
)

// node is a value of a document.
type node struct {
	kind    kind
	at      int64  // offset in the document
	scalar  string // the value of a string; a number or a boolean as written
	members []member
	index   map[string]*node // the values of members
	items   []*node
}

// member is a key of an object with its value.
type member struct {
	key   string
	at    int64
	value *node
}

// member returns the value of a key; nil = there is none.
func (n *node) member(key string) *node { return n.index[key] }

// put adds a key, which checkKey has checked.
func (n *node) put(key string, at int64, value *node) {
	if n.index == nil {
		n.index = map[string]*node{}
	}
	n.index[key] = value
	n.members = append(n.members, member{key, at, value})
}

// String is the value for messages. Long values are cut.
func (n *node) String() string {
	switch n.kind {
	case object, list, null:
		return string(n.kind)
	case text:
		if len(n.scalar) > maxShown {
			return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(strings.ToValidUTF8(n.scalar[:maxShown], "")), len(n.scalar))
		}
		return strconv.Quote(n.scalar)
	}
	if len(n.scalar) > maxShown {
		return fmt.Sprintf("%s… (%d bytes)", n.scalar[:maxShown], len(n.scalar))
	}
	return n.scalar
}

// maxShown is the longest value in a message, bytes.
const maxShown = 60

// Bounds of a document. An alias of YAML counts as often as it is used.
const (
	maxNodes = 100_000 // values
	maxDepth = 64      // objects and lists in each other
	maxKey   = 256     // bytes of a key
)

// document is a text that is read into nodes.
type document struct {
	file  string
	text  []byte
	noun  string // for messages: "the manifest"
	nodes int    // made so far
}

func (d *document) fail(offset int64, format string, args ...any) error {
	return Fault(d.file, d.text, offset, format, args...)
}

// checkText refuses bytes that no format allows.
func (d *document) checkText() error {
	for i := 0; i < len(d.text); {
		r, size := utf8.DecodeRune(d.text[i:])
		if r == utf8.RuneError && size == 1 {
			return d.fail(int64(i), "the byte %#02x is not UTF-8: %s is a text in UTF-8", d.text[i], d.noun)
		}
		if r == 0 {
			return d.fail(int64(i), "%s has a zero byte", d.noun)
		}
		i += size
	}
	return nil
}

// node makes a node. It refuses documents that are too large.
func (d *document) node(k kind, at int64, depth int) (*node, error) {
	if d.nodes++; d.nodes > maxNodes {
		return nil, d.fail(at, "%s has more than %d values", d.noun, maxNodes)
	}
	if depth > maxDepth {
		return nil, d.fail(at, "objects and lists are in each other more than %d levels deep", maxDepth)
	}
	return &node{kind: k, at: at}, nil
}

// checkKey refuses a key of n that stands twice or is too long.
func (d *document) checkKey(n *node, key string, at int64) error {
	switch {
	case n.kind != object || n.index[key] != nil:
		return d.fail(at, "key %q stands twice", shorten(key))
	case len(key) > maxKey:
		return d.fail(at, "a key has %d bytes: at most %d are allowed", len(key), maxKey)
	}
	return nil
}
