package rewriter

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxNth bounds the numbers of :nth-child.
const maxNth = 1 << 30

// nth reads the argument of :nth-child: odd, even, or a·n + b.
func (p *parser) nth(kind testKind) (t test, err error) {
	end := strings.IndexByte(p.text[p.at:], ')')
	if end < 0 {
		end = len(p.text) - p.at
	}
	text := strings.ToLower(strings.TrimSpace(p.text[p.at : p.at+end]))
	t = test{kind: kind}
	switch text {
	case "odd":
		t.a, t.b = 2, 1
	case "even":
		t.a = 2
	default:
		var ok bool
		if t.a, t.b, ok = readNth(text); !ok {
			return t, p.wrong("%q is no place among children: odd, even or an+b", text)
		}
	}
	p.at += end
	return t, nil
}

func readNth(text string) (a, b int, ok bool) {
	first, rest, hasN := strings.Cut(text, "n")
	if !hasN {
		b, ok = readInteger(text)
		return 0, b, ok
	}
	switch first {
	case "", "+":
		a = 1
	case "-":
		a = -1
	default:
		if a, ok = readInteger(first); !ok {
			return 0, 0, false
		}
	}
	rest = strings.TrimSpace(rest)
	if rest == "" {
		return a, 0, true
	}
	if rest[0] != '+' && rest[0] != '-' {
		return 0, 0, false
	}
	digits := strings.TrimSpace(rest[1:])
	if digits == "" || digits[0] < '0' || digits[0] > '9' {
		return 0, 0, false
	}
	b, ok = readInteger(rest[:1] + digits)
	return a, b, ok
}

func readInteger(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && n > -maxNth && n < maxNth
}

// isNameByte reports whether a byte can be in a name: also each byte of other characters than ASCII.
func isNameByte(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '-' || c == '_' || c >= utf8.RuneSelf
}

// startsName reports whether a name begins here.
func (p *parser) startsName() bool {
	rest := p.text[p.at:]
	rest, dashed := strings.CutPrefix(rest, "-")
	if rest == "" {
		return false
	}
	switch c := rest[0]; {
	case c == '-':
		return dashed
	case c == '\\':
		return len(rest) > 1 && rest[1] != '\n'
	default:
		return isNameByte(c) && (c < '0' || c > '9')
	}
}

// name reads an identifier of CSS.
func (p *parser) name() (string, error) {
	if !p.startsName() {
		return "", p.unexpected()
	}
	var out strings.Builder
	for !p.end() {
		c := p.text[p.at]
		switch {
		case isNameByte(c):
			out.WriteByte(c)
			p.at++
		case c == '\\' && p.at+1 < len(p.text) && p.text[p.at+1] != '\n':
			p.escape(&out)
		default:
			return out.String(), nil
		}
	}
	return out.String(), nil
}

// escape reads a backslash and what follows it.
func (p *parser) escape(out *strings.Builder) {
	p.at++
	from := p.at
	for p.at < len(p.text) && p.at-from < 6 && isHex(p.text[p.at]) {
		p.at++
	}
	switch {
	case p.at > from:
		n, _ := strconv.ParseUint(p.text[from:p.at], 16, 32)
		if n == 0 {
			n = utf8.RuneError
		}
		out.WriteRune(rune(n)) // what is no character becomes U+FFFD
		if !p.end() && isSpace(p.text[p.at]) {
			p.at++
		}
	case p.end():
		out.WriteRune(utf8.RuneError)
	case p.text[p.at] == '\n': // the line goes on
		p.at++
	default:
		_, n := utf8.DecodeRuneInString(p.text[p.at:])
		out.WriteString(p.text[p.at : p.at+n])
		p.at += n
	}
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f' }
