package rewriter

import (
	"bytes"
	"fmt"
	"strings"
)

// namespace is that of an element.
type namespace uint8

const (
	html namespace = iota
	svg
	mathML
)

// maxForeign is how deep SVG, MathML and HTML in these may be nested, each in another than itself.
const maxForeign = 4096

var errForeign = fmt.Errorf("SVG or MathML of the page is nested more than %d times", maxForeign)

func set(names string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.FieldsSeq(names) {
		all[name] = true
	}
	return all
}

var (
	// voids never have content.
	voids = set("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
	// leaving end the innermost SVG or MathML in which they stand.
	leaving = set(`b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing
		menu meta nobr ol p pre ruby s small span strong strike sub sup table tt u ul var`)
	// In these HTML begins again.
	htmlInSVG  = set("desc title foreignobject")
	htmlInMath = set("mi mo mn ms mtext")
	// modes has the elements with text of a kind of its own.
	modes = map[string]textMode{
		"textarea": rawText, "title": rawText, "style": rawText, "iframe": rawText, "xmp": rawText, "noembed": rawText,
		"noframes": rawText, "noscript": rawText, "script": scriptText, "plaintext": plainText,
	}
)

// foreign follows which namespace a page is in, from its tags alone.
type foreign struct{ stack []nested }

// nested is a namespace, and how many times it is nested in itself.
type nested struct {
	namespace
	times int
}

func (f *foreign) current() namespace {
	if len(f.stack) == 0 {
		return html
	}
	return f.stack[len(f.stack)-1].namespace
}

func (f *foreign) outer() namespace {
	at := len(f.stack) - 1
	if at >= 0 && f.stack[at].times == 1 {
		at--
	}
	if at < 0 {
		return html
	}
	return f.stack[at].namespace
}

func (f *foreign) enter(ns namespace) error {
	if n := len(f.stack); n > 0 && f.stack[n-1].namespace == ns {
		f.stack[n-1].times++
		return nil
	}
	if len(f.stack) == maxForeign {
		return errForeign
	}
	f.stack = append(f.stack, nested{ns, 1})
	return nil
}

func (f *foreign) leave() {
	last := len(f.stack) - 1
	if f.stack[last].times--; f.stack[last].times == 0 {
		f.stack = f.stack[:last]
	}
}

// start is called for a start tag that is read from b. It returns how the text after the tag is read.
func (f *foreign) start(name []byte, b []byte, t *tag) (textMode, error) {
	switch now := f.current(); {
	case string(name) == "svg":
		return dataText, f.enter(svg)
	case string(name) == "math":
		return dataText, f.enter(mathML)
	case now == html:
		return modes[string(name)], nil
	case leaving[string(name)] || string(name) == "font" && t.has(b, "color", "size", "face"):
		f.leave()
	case t.selfClosed:
	case now == svg && htmlInSVG[string(name)],
		now == mathML && (htmlInMath[string(name)] || isHTMLAnnotation(name, b, t)):
		return dataText, f.enter(html)
	}
	return dataText, nil
}

// end is called for an end tag.
func (f *foreign) end(name []byte) {
	switch now := f.current(); {
	case len(f.stack) == 0:
	case now == svg && string(name) == "svg", now == mathML && string(name) == "math":
		f.leave()
	case now != html:
	case f.outer() == svg && htmlInSVG[string(name)],
		f.outer() == mathML && (htmlInMath[string(name)] || string(name) == annotation):
		f.leave()
	}
}

const annotation = "annotation-xml"

func isHTMLAnnotation(name []byte, b []byte, t *tag) bool {
	if string(name) != annotation {
		return false
	}
	for _, a := range t.attributes {
		if bytes.EqualFold(a.name.of(b), []byte("encoding")) {
			value := a.value.of(b)
			return bytes.EqualFold(value, []byte("text/html")) || bytes.EqualFold(value, []byte("application/xhtml+xml"))
		}
	}
	return false
}

// has reports whether the tag has one of the attributes.
func (t *tag) has(b []byte, names ...string) bool {
	for _, a := range t.attributes {
		for _, name := range names {
			if bytes.EqualFold(a.name.of(b), []byte(name)) {
				return true
			}
		}
	}
	return false
}

func (s span) of(b []byte) []byte { return b[s.from:s.to] }
