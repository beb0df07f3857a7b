// Package rewriter finds in a page of HTML what the handlers of an HTMLRewriter ask for: elements by selector, text,
// comments, the doctype.
//
// A Stream takes the page in pieces and passes each byte on unchanged. With the bytes it returns records, which say
// where in them the tokens are that have handlers. JavaScript calls the handlers and replaces these tokens. There is no
// tree: an element is open from its start tag to the next end tag of its name, as in Cloudflare's parser. What a Stream
// holds is bounded: the bytes of one token, and the stack of open elements.
//
// scan.go splits the page into tokens, tag.go reads tags, foreign.go follows SVG and MathML, selector.go and parse.go
// have the selectors, match.go the stack of open elements, and stream.go puts these together.
package rewriter
