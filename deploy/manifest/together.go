package manifest

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events/workers"
)

// ofOneFile are the words that each of many files says for itself.
var ofOneFile = []string{WordEnabled, wordWebSocket}

// Together is what the comments of many files say of the one worker that they are. must are the files that say a word
// all or none, may are those that need not repeat it. What spec says already, a file may say or not. The error is a
// *SourceError where a file says what another one does not.
func Together(spec workers.Spec, must, may []Comments) (c Comments, err error) {
	for _, one := range slices.Concat(must, may) {
		if c.sockets == nil {
			c.sockets = one.sockets
		}
	}
	says := func(one Comments) bool {
		with, _, err := one.With(spec)
		return err != nil || !reflect.DeepEqual(with, spec)
	}
	speakers := slices.DeleteFunc(slices.Concat(must, may), func(one Comments) bool { return !says(one) })
	if len(speakers) == 0 {
		return c, nil
	}
	first := speakers[0]
	for _, one := range speakers {
		for _, word := range one.Words() {
			if err := first.sameWord(one, word, must); err != nil {
				return c, err
			}
		}
	}
	first.sockets = c.sockets
	return first, nil
}

const oneWorker = "all files of fileRoutes are one worker: say the same in each, or once in the manifest"

// sameWord checks that a word that other says stands in these comments and in all of must, and means the same.
func (c Comments) sameWord(other Comments, word string, must []Comments) error {
	if slices.Contains(ofOneFile, word) {
		return nil
	}
	for _, one := range append(slices.Clone(must), c) {
		switch {
		case one.path == other.path:
		case !one.has(word):
			return other.Fault(word, "@%s is not in %s: %s", word, one.path, oneWorker)
		case !reflect.DeepEqual(one.meaning(word), other.meaning(word)):
			return other.Fault(word, "@%s is %q here and %q in %s: %s", word, other.value(word), one.value(word), one.path,
				oneWorker)
		}
	}
	return nil
}

func (c *Comments) has(word string) bool {
	_, ok := c.said[word]
	return ok
}

// value is what follows a word that says something.
func (c *Comments) value(word string) string {
	line, _, _ := strings.Cut(string(c.source[c.said[word]:]), "\n")
	value, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return value
}

// meaning is a specification with what the word says alone.
func (c *Comments) meaning(name string) (s workers.Spec) {
	i := slices.IndexFunc(words, func(w word) bool { return w.name == name })
	_ = words[i].set(&s, c.value(name)) // ParseComments has read it without an error
	return s
}
