package dotenv

import (
	"fmt"
	"strings"
)

// maxExpanded bounds the bytes of all values together, and maxWork the bytes that are read and copied to make them:
// each value may name several others.
const (
	maxExpanded = MaxFile
	maxWork     = 16 << 20
	stepWork    = 64 // what a name in a value counts as, beside the bytes of the value
)

// Expand replaces $NAME and ${NAME} in the values by the values of names that stand before, in the order of the files,
// and by nothing if none does. ${NAME-other} and ${NAME:-other} are the other text when NAME has no value, and
// ${NAME+other} and ${NAME:+other} are it when NAME has one. A $ behind a backslash is a $. The environment of the
// process is not read. The error quotes no value.
func (v *Vars) Expand() error {
	before, total, work := map[string]string{}, 0, 0
	for _, name := range v.names {
		value, ok := expand(v.values[name], before, &work)
		value = strings.ReplaceAll(value, `\$`, "$")
		if total += len(value); !ok || total > maxExpanded {
			return fmt.Errorf("%s: the names behind $ in its value stand for too much, or for each other without end", name)
		}
		before[name] = value
	}
	v.values = before
	return nil
}

// expand replaces the names in one value, and adds to the work. ok is false when that takes too much, or does not end.
func expand(value string, before map[string]string, work *int) (expanded string, ok bool) {
	seen := map[string]bool{}
	for ; ; *work += len(value) + stepWork {
		if *work > maxWork || len(value) > maxExpanded {
			return "", false
		}
		template, expression := reference(value)
		if template == "" {
			return value, true
		}
		seen[value] = true
		name, with := choose(expression, before, seen)
		value = replaceFirst(value, template, with)
		if was, ok := before[name]; ok && value == was {
			return value, true
		}
	}
}

// reference finds the first $NAME or ${NAME} that is not behind a backslash: all of it, and what stands for the name.
// Both are "" when there is none.
func reference(value string) (template, expression string) {
	for i := range len(value) {
		if value[i] != '$' || i > 0 && value[i-1] == '\\' {
			continue
		}
		rest := value[i+1:]
		if inner, ok := strings.CutPrefix(rest, "{"); ok {
			end := strings.IndexAny(inner, "{}")
			if end > 0 && inner[end] == '}' {
				return value[i : i+end+3], inner[:end]
			}
			continue
		}
		n := 0
		for n < len(rest) && (isLetter(rest[n]) || n > 0 && '0' <= rest[n] && rest[n] <= '9') {
			n++
		}
		if n > 0 {
			return value[i : i+n+1], rest[:n]
		}
	}
	return "", ""
}

func isLetter(c byte) bool { return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// choose returns the name in an expression, and what replaces the expression.
func choose(expression string, before map[string]string, seen map[string]bool) (name, with string) {
	operator := ""
	if i := strings.IndexAny(expression, "+-"); i >= 0 {
		operator = expression[i : i+1]
		if i > 0 && expression[i-1] == ':' {
			operator = ":" + operator
		}
	}
	name, other := expression, ""
	if operator != "" {
		name, other, _ = strings.Cut(expression, operator)
	}
	value := before[name]
	if strings.HasSuffix(operator, "+") {
		if value == "" {
			other = ""
		}
		return name, other
	}
	if value == "" || seen[value] {
		return name, other
	}
	return name, value
}

// replaceFirst replaces the first old in text, as String.prototype.replace does: of what replaces it, $$ is a $, $& is
// old, and $` and $' are what stands before and behind old.
func replaceFirst(text, old, with string) string {
	before, behind, _ := strings.Cut(text, old)
	var b strings.Builder
	b.WriteString(before)
	for {
		plain, rest, found := strings.Cut(with, "$")
		b.WriteString(plain)
		if !found {
			break
		}
		with = rest
		code := byte(0)
		if rest != "" {
			code = rest[0]
		}
		switch code {
		case '$':
			b.WriteByte('$')
		case '&':
			b.WriteString(old)
		case '`':
			b.WriteString(before)
		case '\'':
			b.WriteString(behind)
		default:
			b.WriteByte('$')
			continue
		}
		with = rest[1:]
	}
	b.WriteString(behind)
	return b.String()
}
