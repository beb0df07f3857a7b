package egress

import (
	"slices"
	"unicode/utf8"
)

// The value of a header is bytes. In JavaScript it is a string with one character up to U+00FF for each byte.

// HeaderBytes returns the bytes of a value that JavaScript has: they go over the wire. A value with characters beyond
// U+00FF is no such string: it is the text of a task's header, and its bytes are UTF-8.
func HeaderBytes(value string) string {
	if isASCII(value) {
		return value
	}
	out := make([]byte, 0, len(value))
	for _, r := range value {
		if r > 0xff {
			return value
		}
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

// HeaderTexts returns a list of names and values as JavaScript gets it. It does not change flat.
func HeaderTexts(flat []string) []string { return mapNotASCII(flat, HeaderText) }

// HeadersBytes returns a list of names and values that JavaScript has as it goes over the wire. It does not change
// flat.
func HeadersBytes(flat []string) []string { return mapNotASCII(flat, HeaderBytes) }

// mapNotASCII copies a list only if it has more than ASCII. Few have.
func mapNotASCII(flat []string, f func(string) string) []string {
	first := slices.IndexFunc(flat, func(s string) bool { return !isASCII(s) })
	if first < 0 {
		return flat
	}
	flat = slices.Clone(flat)
	for i := first; i < len(flat); i++ {
		flat[i] = f(flat[i])
	}
	return flat
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
