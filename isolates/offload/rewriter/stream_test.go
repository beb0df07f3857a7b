package rewriter_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/offload/rewriter"
)

func always() error { return nil }

// tokens passes a page in pieces through a Stream. It returns what came out, and the records in words. Text is joined.
func tokens(
	t testing.TB, selectors []string, handlers []rewriter.Handlers, pieces ...string,
) (page string, list []string) {
	t.Helper()
	s, err := rewriter.New(selectors, handlers)
	require.NoError(t, err)
	text := ""
	for i := range len(pieces) + 1 {
		in, last := "", i == len(pieces)
		if !last {
			in = pieces[i]
		}
		for {
			out, records, more, err := s.Step([]byte(in), last, always)
			require.NoError(t, err)
			page += string(out)
			for len(records) > 0 {
				var line string
				var ended bool
				line, ended, records = describe(records, string(out))
				if after, ok := strings.CutPrefix(line, "text "); ok {
					if text += after; ended {
						list, text = append(list, "text "+text), ""
					}
					continue
				}
				require.Empty(t, text, "a text node that has not ended before %s", line)
				list = append(list, line)
			}
			if in = ""; !more {
				break
			}
		}
	}
	require.Empty(t, text)
	return page, list
}

// describe writes a record in words, without ids and positions.
func describe(r []int32, out string) (line string, ended bool, rest []int32) {
	part := func(i int) string {
		if r[i] < 0 {
			return "-"
		}
		return out[r[i]:r[i+1]]
	}
	switch r[0] {
	case 1:
		n := 8 + int(r[7])
		line = fmt.Sprint("element ", part(1), " ", r[3], " ", part(5), " ", r[8:n])
		count := int(r[n])
		for n++; count > 0; count-- {
			line += fmt.Sprintf(" %s=%s", part(n), part(n+2))
			n += 5
		}
		return line, false, r[n:]
	case 2:
		n := 6 + int(r[5])
		return fmt.Sprint("end ", part(1), " ", part(3), " ", r[5]), false, r[n:]
	case 3:
		n := 5 + int(r[4])
		return "text " + part(1), r[3] == 1, r[n:]
	case 4:
		n := 6 + int(r[5])
		return fmt.Sprint("comment ", part(1), " ", part(3), " ", r[6:n]), false, r[n:]
	}
	return fmt.Sprint("doctype ", part(1), " ", part(3), " ", part(5), " ", part(7)), false, r[9:]
}

const all = rewriter.Elements | rewriter.Comments | rewriter.Text | rewriter.Doctypes

var everything = []rewriter.Handlers{all, all, all}

// pages have what is special in HTML.
var pages = []string{
	`<!DOCTYPE html><html><head><title>A &amp; B</title></head><body class='x y' id=main><p>one<br>two</p><!-- c -->` +
		`<ul><li>1<li>2<li data-k="v">3</ul><img src=a.png><DIV Class=Big>né𝄞e</DIV></body></html>`,
	`<script><!-- <script> a </script> b --></script>c<script><!-- x </script>d<script><!--<script>--></script>e`,
	`<!--><!---><!----><!--a--!><!-- - -- ---><!x><?php a ?></1><![CDATA[x]]><!--<!--a--><!-->b`,
	`<p>a < b <3 </ d <></></p><a =x b = c d= 'e' f=g/h i="j"k l/m n=o/ "p q' <r s=t"u v='>' W>t</a>`,
	`<svg viewBox="0 0 1 1"><title><b>x</b></title><path d="M0"/><style><a></a></style><foreignObject><p>t</p>` +
		`</foreignObject><![CDATA[<x>]]]>]]></svg><math><mi><b>x</b></mi><annotation-xml encoding="text/html"><p>`,
	`<textarea></TEXTAREA
>e<title>f</title x="y">g<style></styl></style/>d<plaintext>a</plaintext><b>`,
	"<a\x00b c\x00d>\x00\xff\xfe\xe2\x82</a><!DOCTYPE a PUBLIC 'x><!DOCTYPE a PUBLIC \"x\"\"y\">", "<p>a<b x=\"", "a<!-- c-", "<", "</", "<!", "<!d",
	"<!doctype", "<script>a</scri", "<style>a</style", "<script><!--<script", "\xe2\x82", "<svg><![CDATA[a]]",
	"<p/><br/><a x/>",
}

// A page comes out as it went in, and has the same tokens, however it is cut.
func TestPagesComeOutAsTheyWentIn(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, page := range pages {
		whole, want := tokens(t, []string{"*", "p, b"}, everything, page)
		require.Equal(t, page, whole)
		for range 40 {
			out, have := tokens(t, []string{"*", "p, b"}, everything, cut(r, page)...)
			require.Equal(t, page, out)
			require.Equal(t, want, have)
		}
		out, have := tokens(t, []string{"*", "p, b"}, everything, strings.Split(page, "")...)
		require.Equal(t, page, out)
		require.Equal(t, want, have)
	}
}

func cut(r *rand.Rand, text string) (pieces []string) {
	for len(text) > 0 {
		n := 1 + r.IntN(min(len(text), 12))
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

func FuzzPagesComeOutAsTheyWentIn(f *testing.F) {
	for _, page := range pages {
		f.Add(page, uint64(1))
	}
	f.Fuzz(func(t *testing.T, page string, seed uint64) {
		if len(page) > 4096 {
			return
		}
		selectors := []string{"*", "p:nth-of-type(2n), b > i, [a]"}
		whole, want := tokens(t, selectors, everything, page)
		require.Equal(t, page, whole)
		out, have := tokens(t, selectors, everything, cut(rand.New(rand.NewPCG(seed, 0)), page)...)
		require.Equal(t, page, out)
		require.Equal(t, want, have)
	})
}

func FuzzSelectors(f *testing.F) {
	for _, s := range []string{"*", "a > b.c#d", "[a~='b' i]", ":not(p, :nth-child(2n+1))", "p, q", `p\:a`, "/* x */ a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, selector string) {
		n, err := rewriter.Count(selector)
		require.Equal(t, err == nil, n > 0)
		if err == nil {
			page := `<a b=c class="d e"><p><b>x</b></p></a>`
			out, _ := tokens(t, []string{selector}, []rewriter.Handlers{all, 0}, page)
			require.Equal(t, page, out)
		}
	})
}

// steps passes pieces of a page until one fails.
func steps(t *testing.T, s *rewriter.Stream, piece string, n int) error {
	t.Helper()
	for range n {
		in := []byte(piece)
		for more := true; more; in = nil {
			var err error
			if _, _, more, err = s.Step(in, false, always); err != nil {
				return err
			}
		}
	}
	return nil
}

// What a Stream holds has bounds, whatever the page is.
func TestBounds(t *testing.T) {
	t.Parallel()
	piece := strings.Repeat("x", 64<<10)
	for name, c := range map[string]struct{ head, piece, want string }{
		"attribute":  {`<a b="`, piece, "more than 1048576 bytes"},
		"tag name":   {`<a`, piece, "more than 1048576 bytes"},
		"comment":    {`<!--`, piece, "more than 1048576 bytes"},
		"doctype":    {`<!doctype`, piece, "more than 1048576 bytes"},
		"attributes": {`<a`, strings.Repeat(" b", 1000), "more than 4096 attributes"},
		"nesting":    {``, strings.Repeat("<a>", 10000), "nested too deep"},
		"svg":        {``, strings.Repeat("<svg><desc>", 1000), "nested more than"},
		"names":      {``, strings.Repeat("<a"+piece[:1000]+">", 60), "nested too deep"},
		"long text":  {``, piece, ""},
		"long raw":   {`<script>`, piece, ""},
		"siblings":   {``, strings.Repeat("<a></a>", 10000), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := rewriter.New([]string{"* b"}, []rewriter.Handlers{all, all})
			require.NoError(t, err)
			require.NoError(t, steps(t, s, c.head, 1))
			err = steps(t, s, c.piece, 100)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
			require.LessOrEqual(t, s.Held(), rewriter.MaxToken+len(c.piece))
		})
	}
	_, _, _, err := new(rewriter.Stream).Step(make([]byte, rewriter.MaxPiece+1), false, always)
	require.Error(t, err)
	_, err = rewriter.New(make([]string, rewriter.MaxEntries+1), make([]rewriter.Handlers, rewriter.MaxEntries+2))
	require.Error(t, err)
	_, err = rewriter.New([]string{strings.Repeat("a ", 600), strings.Repeat("a ", 600)}, everything)
	require.ErrorContains(t, err, "more than 1024 parts")
}

// Different names of children are counted in the bounds of the stack.
func TestNamesOfChildrenAreBounded(t *testing.T) {
	t.Parallel()
	s, err := rewriter.New([]string{":nth-of-type(2)"}, []rewriter.Handlers{all, all})
	require.NoError(t, err)
	for i := 0; ; i++ {
		if _, _, _, err = s.Step(fmt.Appendf(nil, "<a%d></a%d>", i, i), false, always); err != nil {
			break
		}
		require.Less(t, i, 100_000)
	}
	require.ErrorContains(t, err, "nested too deep")
}

// A step ends when its caller says so, and returns a bounded number of records.
func TestStepsEnd(t *testing.T) {
	t.Parallel()
	s, err := rewriter.New([]string{"*"}, []rewriter.Handlers{all, all})
	require.NoError(t, err)
	_, records, more, err := s.Step(bytes.Repeat([]byte("<a></a>"), 30000), false, always)
	require.NoError(t, err)
	require.True(t, more)
	require.Less(t, len(records), 70_000)
	stop := fmt.Errorf("stop")
	_, _, _, err = s.Step(nil, false, func() error { return stop })
	require.ErrorIs(t, err, stop)

	// Tests of a long attribute end between two of them.
	s, err = rewriter.New([]string{strings.Repeat("[a*=b],", 500) + "c"}, []rewriter.Handlers{all, all})
	require.NoError(t, err)
	asked := 0
	_, _, _, err = s.Step([]byte(`<c a="`+strings.Repeat("x", 100_000)+`">`), false, func() error {
		if asked++; asked < 3 {
			return nil
		}
		return stop
	})
	require.ErrorIs(t, err, stop)
	require.Equal(t, 3, asked)
}

func TestSelectorErrors(t *testing.T) {
	t.Parallel()
	for selector, want := range map[string]string{
		"":             "ends too early",
		"p + p":        `the combinator '+' is not supported`,
		"p:hover":      `":hover" is not supported in the selector "p:hover"`,
		"p::before":    "a pseudo-element is not supported",
		"p..a":         `'.' is not expected at position 2 of the selector "p..a"`,
		"svg|a":        "a namespace is not supported",
		"p:nth-child":  `":nth-child" needs an argument`,
		"p:not(p > a)": `'>' is not expected at position 8`,
		strings.Repeat("a", rewriter.MaxSelector+1): "more than 16384 bytes",
		strings.Repeat("a ", 1025):                  "more than 1024 parts",
		strings.Repeat(":not(", 20) + "a":           "nested more than 8 times",
		"p:nth-child(99999999999999999999)":         "is no place among children",
	} {
		_, err := rewriter.Count(selector)
		require.ErrorContains(t, err, want, "%.40s", selector)
	}
}

// BenchmarkStep has a page with one simple selector and few matches, and one with a handler for each element.
func BenchmarkStep(b *testing.B) {
	page := []byte(strings.Repeat(`<div class="row"><p class="text">Some text that somebody reads, <a href="/a/b?c=d">with a link</a>, `+
		`and more of it.</p><img src="/i/x.png" alt="An image"></div>`+"\n", 400))
	for name, selector := range map[string]string{"few": "a#none", "class": ".none", "all": "*"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(page)))
			s, err := rewriter.New([]string{selector}, []rewriter.Handlers{rewriter.Elements, 0})
			require.NoError(b, err)
			for b.Loop() {
				for in, more := page, true; more; in = nil {
					if _, _, more, err = s.Step(in, false, always); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
