// Package ask has the pure functions that exist in Go and that JavaScript calls synchronously (host.ask).
package ask

import (
	constanttime "crypto/subtle"
	"fmt"

	"github.com/pinwheel-run/pinwheel/isolates/js"
	"github.com/pinwheel-run/pinwheel/isolates/offload/charset"
	"github.com/pinwheel-run/pinwheel/isolates/offload/rewriter"
	"github.com/pinwheel-run/pinwheel/isolates/offload/subtle"
	"github.com/pinwheel-run/pinwheel/isolates/v8x"
)

// Wasm is WebAssembly in a context. Admit answers whether V8 may compile a module, by v8x.AnswerWasm. Import returns
// the bytes of a module of the worker's bundle. Decode and Tag return an error when V8 must not decode the module of
// that hash, or make a tag with those parameters.
type Wasm struct {
	Admit  func(code []byte) ([]byte, error)
	Decode func(hash []byte) error
	Tag    func(parameters string) error
	Import func(hash string) ([]byte, error)
}

// Answers returns the v8x.HostFunc of a context. frames maps the frames of a stack to the author's files.
func Answers(frames func(string) string, wasm Wasm) v8x.HostFunc {
	return func(in []byte) ([]byte, error) {
		q := v8x.ReadCommands(in)
		op, _ := q.Next()
		if op == js.AskFrames {
			return v8x.AnswerString(frames(q.Text())), nil
		}
		switch op {
		case js.AskWasm:
			return wasm.Admit(q.View())
		case js.AskWasmDecode:
			return v8x.AnswerNull(), wasm.Decode(q.View())
		case js.AskWasmTag:
			return v8x.AnswerNull(), wasm.Tag(q.Text())
		case js.AskWasmImport:
			code, err := wasm.Import(q.Text())
			return v8x.AnswerBytes(code), err
		}
		return answer(op, &q)
	}
}

func answer(op int, q *v8x.Commands) ([]byte, error) {
	switch op {
	case js.AskSubtle:
		return subtle.Now(q).Answer(), nil
	case js.AskDecode:
		return decodeLegacy(q.Text(), int(q.Int()), q.View(), q.Bool(), q.Bool())
	case js.AskSelector:
		return selector(q.Text()), nil
	case js.AskTimingSafeEqual:
		a := q.View()
		return v8x.AnswerBool(constanttime.ConstantTimeCompare(a, q.View()) == 1), nil
	case js.AskDomainToASCII:
		return v8x.AnswerString(DomainToASCII(q.Text())), nil
	}
	return nil, fmt.Errorf("host.ask: unknown op %d", op)
}

// selector checks a selector of an HTMLRewriter. The answer is the number of its parts in two bytes, or what is wrong.
func selector(text string) []byte {
	n, err := rewriter.Count(text)
	if err != nil {
		return v8x.AnswerString(err.Error())
	}
	return v8x.AnswerBytes([]byte{byte(n), byte(n >> 8)})
}

// decodeLegacy decodes a piece of text in one of the legacy encodings. The answer has two strings. The first is the
// text. The code units of the second are the number of incomplete bytes at the end, and the state to continue with. The
// answer is null if the bytes are not valid and fatal is true.
func decodeLegacy(encoding string, state int, in []byte, last, fatal bool) ([]byte, error) {
	r, err := charset.Decode(encoding, state, in, last)
	if err != nil {
		return nil, err
	}
	if r.Wrong && fatal {
		return v8x.AnswerNull(), nil
	}
	return v8x.AnswerTexts(string(r.Text), string([]rune{rune(r.Rest), rune(r.State)})), nil
}
