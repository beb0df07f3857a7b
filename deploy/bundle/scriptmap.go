package bundle

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/pinwheel-run/pinwheel/deploy/manifest"
)

var token = regexp.MustCompile(`[\w$]+|[^\s\w$]`)

// mapWithout is the comment with the source map of a text that has more than its source at one offset: as many
// characters, without a break of the line. So a stack has the columns of the source.
func mapWithout(path, source string, at, more int) string {
	m := inputMap{Version: 3, Sources: []string{filepath.Base(path)}, SourcesContent: []*string{&source},
		Names: []string{}}
	var b strings.Builder
	offset, lastLine, lastColumn := 0, 0, 0
	lineEnd := len(source)
	if i := strings.IndexByte(source[at:], '\n'); i >= 0 {
		lineEnd = at + i
	}
	for i, line := range strings.SplitAfter(source, "\n") {
		if i > 0 {
			b.WriteByte(';')
		}
		column, made, read := 0, 0, 0
		for j, t := range token.FindAllStringIndex(line, -1) {
			column += manifest.UTF16Len(line[read:t[0]])
			read = t[0]
			shifted := column
			if first := offset + t[0]; first >= at && first < lineEnd {
				shifted += more
			}
			if j > 0 {
				b.WriteByte(',')
			}
			for _, n := range []int{shifted - made, 0, i - lastLine, column - lastColumn} {
				writeVLQ(&b, n)
			}
			made, lastLine, lastColumn = shifted, i, column
		}
		offset += len(line)
	}
	m.Mappings = b.String()
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // of strings and numbers only
	}
	return "//# sourceMappingURL=data:application/json;base64," + base64.StdEncoding.EncodeToString(text) + "\n"
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// writeVLQ writes a number as source maps have them.
func writeVLQ(b *strings.Builder, n int) {
	v := n << 1
	if n < 0 {
		v = -n<<1 | 1
	}
	for {
		digit := v & 31
		if v >>= 5; v > 0 {
			digit |= 32
		}
		b.WriteByte(base64Digits[digit])
		if v == 0 {
			return
		}
	}
}
