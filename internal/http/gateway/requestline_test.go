package gateway

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// A % in a path that escapes nothing is one, as at other servers. What else comes is not touched.
func TestPercentThatEscapesNothing(t *testing.T) {
	t.Parallel()
	var s seen
	_, addr := open(t, domain, s.handle)
	for path, want := range map[string]string{
		"/100%": "/100%25", "/%": "/%25", "/%zz/b%4?%": "/%25zz/b%254?%", "/%41?a=%zz": "/%41?a=%zz", "/a?100%": "/a?100%",
	} {
		list := raw(t, addr, "GET "+path+" HTTP/1.1\r\n"+helloHost+"X-A: /% HTTP/1.1\r\n\r\n", 1)
		require.Equal(t, 200, list[0].StatusCode, path)
		e := s.take()[0]
		require.Equal(t, "http://hello--acme.w.test"+want, e.URL)
		require.Contains(t, e.HTTPHeaders, "/% HTTP/1.1")
	}
	// The next request of a connection, also one that came before it was asked for, and a body that looks like one.
	const body = "GET /% HTTP/1.1\r\n"
	one := "POST /1% HTTP/1.1\r\n" + helloHost + "Content-Length: 17\r\n\r\n" + body
	require.Len(t, raw(t, addr, one, 1), 1)
	e := s.take()[0]
	require.Equal(t, body, string(e.Body))
	require.Len(t, raw(t, addr, one+"POST /2 HTTP/1.1\r\n"+helloHost+"Content-Length: 17\r\n\r\n"+body, 2), 2)
	for _, e := range s.take() {
		require.Equal(t, body, string(e.Body))
	}
}

// However the bytes of a connection come in pieces, they are the same.
func TestRequestLineInPieces(t *testing.T) {
	t.Parallel()
	const request = "GET /%4%zz%?%4 HTTP/1.1\r\nHost: a%\r\n\r\n/% \n"
	for name, from := range map[string]io.Reader{
		"whole": strings.NewReader(request), "bytes": iotest.OneByteReader(strings.NewReader(request)),
		"halves": iotest.HalfReader(strings.NewReader(request)), "end": iotest.DataErrReader(strings.NewReader(request)),
	} {
		l := &requestLine{}
		l.begins.Store(true)
		got, err := io.ReadAll(readerFunc(func(p []byte) (int, error) { return l.read(p, from.Read) }))
		require.NoError(t, err)
		require.Equal(t, "GET /%254%25zz%25?%4 HTTP/1.1\r\nHost: a%\r\n\r\n/% \n", string(got), name)
	}
	l := &requestLine{}
	l.begins.Store(true)
	got, err := io.ReadAll(readerFunc(func(p []byte) (int, error) {
		return l.read(p, io.MultiReader(strings.NewReader(""), iotest.ErrReader(errors.New("own"))).Read)
	}))
	require.ErrorContains(t, err, "own")
	require.Empty(t, got)
}

type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
