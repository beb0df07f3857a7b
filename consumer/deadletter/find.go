package deadletter

// finder finds a text. The letters a to z may have either case; all other bytes must be the same. It reads each byte
// once, whatever the text is, and copies nothing: bodies are long, and owners choose both.
type finder struct {
	text []byte // with small letters
	// back has for each byte of text how long the longest start of text is that ends there, without the whole. When the
	// next byte is another one, the search continues from it (Knuth, Morris, Pratt).
	back []int
}

// newFinder returns a finder of a text that is not empty.
func newFinder(text string) *finder {
	f := &finder{[]byte(text), make([]int, len(text))}
	for i, c := range f.text {
		f.text[i] = small(c)
	}
	for i, n := 1, 0; i < len(f.text); i++ {
		n = f.next(n, f.text[i])
		f.back[i] = n
	}
	return f
}

// next returns how many bytes of the text the last bytes are, after one more. n is how many they were; not all.
func (f *finder) next(n int, c byte) int {
	for n > 0 && f.text[n] != c {
		n = f.back[n-1]
	}
	if f.text[n] == c {
		n++
	}
	return n
}

// within reports whether s contains the text of f.
func within[S string | []byte](f *finder, s S) bool {
	n := 0
	for i := range len(s) {
		if n = f.next(n, small(s[i])); n == len(f.text) {
			return true
		}
	}
	return false
}

func small(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
