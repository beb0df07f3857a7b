package rewriter

import "bytes"

// scriptState is where in the text of a script a scanner is: an end tag in a script within a comment ends only that.
type scriptState uint8

const (
	scriptPlain   scriptState = iota
	scriptEscaped             // after <!--
	scriptDouble              // after <script in that
)

// scriptData reads the text of a script, or its end tag.
func (s *scanner) scriptData(b []byte, last bool) (tokenKind, int, error) {
	stops := "<"
	if s.script != scriptPlain {
		stops = "<-"
	}
	i := bytes.IndexAny(b, stops)
	switch {
	case i < 0:
		return textToken, len(b), nil
	case i > 0:
		return textToken, i, nil
	case b[0] == '-':
		return s.scriptDash(b, last)
	case s.script == scriptPlain && len(b) > 1 && b[1] == '!':
		return s.scriptComment(b, last)
	case s.script == scriptDouble:
		return s.scriptName(b, "</script", scriptEscaped, last)
	case s.script == scriptEscaped && (len(b) == 1 || b[1] != '/'):
		return s.scriptName(b, "<script", scriptDouble, last)
	}
	kind, size, err := s.rawEnd(b, last)
	if kind == endToken {
		s.script = scriptPlain
	}
	return kind, size, err
}

func (s *scanner) scriptComment(b []byte, last bool) (tokenKind, int, error) {
	const open = "<!--"
	switch {
	case bytes.HasPrefix(b, []byte(open)):
		s.script = scriptEscaped
		return textToken, len(open) - 2, nil // the dashes may be those of -->
	case bytes.HasPrefix([]byte(open), b):
		return orText(last, len(b))
	}
	return textToken, 2, nil
}

// scriptDash reads dashes, which end a comment if > follows.
func (s *scanner) scriptDash(b []byte, last bool) (tokenKind, int, error) {
	n := 0
	for n < len(b) && b[n] == '-' {
		n++
	}
	if n == len(b) {
		if last || n > 2 { // all but two are text whatever follows
			return textToken, max(1, n-2), nil
		}
		return noToken, 0, nil
	}
	if n >= 2 && b[n] == '>' {
		s.script = scriptPlain
		return textToken, n + 1, nil
	}
	return textToken, n, nil
}

// scriptName reads a tag of a script within a comment, after which the state is to.
func (s *scanner) scriptName(b []byte, head string, to scriptState, last bool) (tokenKind, int, error) {
	n := min(len(b), len(head))
	if !bytes.EqualFold(b[:n], []byte(head[:n])) {
		return textToken, 1, nil
	}
	if len(b) <= len(head) {
		return orText(last, 1)
	}
	if c := b[len(head)]; isSpace(c) || c == '/' || c == '>' {
		s.script = to
		return textToken, len(head) + 1, nil
	}
	return textToken, 1, nil
}
