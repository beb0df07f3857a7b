package egress

import "unicode/utf8"

// The value of a header is bytes. In JavaScript it is a string with one character up to U+00FF for each byte.

// HeaderBytes returns the bytes of a value that JavaScript has: they go over the wire.
func HeaderBytes(value string) string {
	if isASCII(value) {
		return value
	}
	out := make([]byte, 0, len(value))
	for _, r := range value {
		out = append(out, byte(r))
	}
	return string(out)
}

// HeaderText returns the string that JavaScript gets of these bytes.
func HeaderText(value string) string {
	if isASCII(value) {
		return value
	}
	out := make([]rune, len(value))
	for i := range len(value) {
		out[i] = rune(value[i])
	}
	return string(out)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
