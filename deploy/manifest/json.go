package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/tidwall/jsonc"
)

// readJSON reads JSON with comments and trailing commas.
func (d *document) readJSON() (*node, error) {
	if err := d.checkText(); err != nil {
		return nil, err
	}
	plain := jsonc.ToJSON(d.text) // every offset stays
	if bytes.HasPrefix(plain, []byte("\ufeff")) {
		copy(plain, "   ")
	}
	r := &jsonReader{doc: d, text: plain, dec: json.NewDecoder(bytes.NewReader(plain))}
	r.dec.UseNumber()
	root, err := r.value(1)
	if err != nil {
		return nil, err
	}
	at := r.next()
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, d.fail(at, "something follows the manifest's closing brace")
	}
	return root, nil
}

// jsonReader reads a JSON text token by token, because encoding/json says nowhere else where a value stands.
type jsonReader struct {
	doc  *document
	text []byte
	dec  *json.Decoder
}

// next is the offset of the next token: the decoder has not yet read the separators before it.
func (r *jsonReader) next() int64 {
	i := r.dec.InputOffset()
	for i < int64(len(r.text)) && bytes.IndexByte([]byte(" \t\r\n,:"), r.text[i]) >= 0 {
		i++
	}
	return i
}

func (r *jsonReader) value(depth int) (*node, error) {
	at := r.next()
	tok, err := r.dec.Token()
	if err != nil {
		return nil, r.syntax(err)
	}
	n, err := r.doc.node(null, at, depth)
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Delim:
		if tok == '{' {
			n.kind = object
			return n, r.object(n, depth)
		}
		n.kind = list
		return n, r.list(n, depth)
	case string:
		n.kind, n.scalar = text, tok
	case json.Number:
		n.kind, n.scalar = number, tok.String()
	case bool:
		n.kind, n.scalar = boolean, map[bool]string{true: "true", false: "false"}[tok]
	}
	return n, nil
}

func (r *jsonReader) object(n *node, depth int) error {
	for r.dec.More() {
		at := r.next()
		tok, err := r.dec.Token()
		if err != nil {
			return r.syntax(err)
		}
		key := tok.(string) // the decoder allows nothing else as a key
		if err := r.doc.checkKey(n, key, at); err != nil {
			return err
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.put(key, at, value)
	}
	return r.end()
}

func (r *jsonReader) list(n *node, depth int) error {
	for r.dec.More() {
		item, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	return r.end()
}

// end reads the bracket that closes an object or a list.
func (r *jsonReader) end() error {
	if _, err := r.dec.Token(); err != nil {
		return r.syntax(err)
	}
	return nil
}

func (r *jsonReader) syntax(err error) error {
	offset := r.dec.InputOffset()
	var se *json.SyntaxError
	switch {
	case errors.As(err, &se) && se.Offset > offset:
		// Inside a value the error counts the bytes read, the wrong one included. Between values it does not.
		offset = se.Offset - 1
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.doc.fail(int64(len(r.text)), "%s ends too early", r.doc.noun)
	}
	return r.doc.fail(offset, "this is not JSON: %v", err)
}
