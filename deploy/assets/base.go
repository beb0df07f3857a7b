package assets

import (
	"io"
	"strings"

	"golang.org/x/net/html"
)

// maxHead is how much of a page is searched for its head, bytes.
const maxHead = 1 << 20

// baseAt finds the place of a <base> in a page: behind <head>, or where browsers begin the head without that tag. It
// returns 1 + the offset in bytes, or 0 when the page has a <base href> of its own.
func baseAt(page io.Reader) int64 {
	z := html.NewTokenizer(io.LimitReader(page, maxHead))
	offset, place, began := int64(0), int64(0), false
	for {
		token := z.Next()
		raw := z.Raw()
		offset += int64(len(raw))
		name, attributes := "", false
		if token == html.StartTagToken || token == html.EndTagToken || token == html.SelfClosingTagToken {
			tag, has := z.TagName()
			name, attributes = string(tag), has
		}
		switch {
		case token == html.ErrorToken, name == "body", cut(token, raw), token == html.EndTagToken && name == "head":
			return 1 + place
		case name == "base" && attributes && hasHref(z):
			return 0
		case token == html.StartTagToken && name == "head" && !began:
			place, began = offset, true
		case began:
		case token == html.DoctypeToken, name == "html":
			place = offset
		case token == html.CommentToken, token == html.TextToken && strings.Trim(string(z.Text()), "\ufeff \t\r\n\f") == "":
		default: // the head begins without its tag
			began = true
		}
	}
}

// cut reports whether the page ends within a tag.
func cut(token html.TokenType, raw []byte) bool {
	return token != html.TextToken && raw[len(raw)-1] != '>'
}

func hasHref(z *html.Tokenizer) bool {
	for {
		key, _, more := z.TagAttr()
		if string(key) == "href" {
			return true
		}
		if !more {
			return false
		}
	}
}
