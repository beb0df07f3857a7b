package bindings

import (
	"strings"
)

const (
	// maxKey is the longest key, bytes of UTF-8.
	maxKey = 512
	// maxTokens is how many tokens of a subject a key has at most.
	maxTokens = 16
	hexDigits = "0123456789ABCDEF"
)

// encodeKey returns the tokens of a subject for a key. Bytes other than A-Z a-z 0-9 _ - become =XX. A token ends after
// each : and /, so that the keys below "user:42:" have a subject with a wildcard.
func encodeKey(key string) string {
	var b strings.Builder
	b.Grow(len(key) + 16)
	tokens := 1
	for i := range len(key) {
		c := key[i]
		if plain(c) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('=')
		b.WriteByte(hexDigits[c>>4])
		b.WriteByte(hexDigits[c&15])
		if delimits(c) && i+1 < len(key) && tokens < maxTokens {
			b.WriteByte('.')
			tokens++
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func delimits(c byte) bool { return c == ':' || c == '/' }

// decodeKey is the inverse of encodeKey. ok is false if no key has these tokens.
func decodeKey(tokens string) (key string, ok bool) {
	b := make([]byte, 0, len(tokens))
	for i := 0; i < len(tokens); i++ {
		switch c := tokens[i]; {
		case plain(c):
			b = append(b, c)
		case c == '.':
		case c == '=' && i+2 < len(tokens):
			hi, lo := strings.IndexByte(hexDigits, tokens[i+1]), strings.IndexByte(hexDigits, tokens[i+2])
			if hi < 0 || lo < 0 {
				return "", false
			}
			b = append(b, byte(hi<<4|lo))
			i += 2
		default:
			return "", false
		}
	}
	key = string(b)
	return key, key != "" && encodeKey(key) == tokens
}

// filters are the subjects, below base, of all keys that begin with prefix, and of some others.
func filters(base, prefix string) []string {
	tokens, end := 1, 0 // end of the last complete token
	for i := range len(prefix) {
		if delimits(prefix[i]) && tokens < maxTokens {
			tokens++
			end = i + 1
		}
	}
	if end == 0 {
		return []string{base + ">"}
	}
	parent := base + encodeKey(prefix[:end])
	if end < len(prefix) {
		return []string{parent + ".>"}
	}
	return []string{parent, parent + ".>"}
}
