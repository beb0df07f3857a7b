package webclient

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var ask = Exchange{
	Request: []byte("POST /" + Owner + " HTTP/1.1\r\nHost: o" + Owner + ".test\r\nContent-Length: 10\r\n\r\n" + Number),
	Answer:  []byte("o" + Owner + ".test /" + Owner + " " + Number),
}

// A real server gets each request as it was meant, also on a connection that was used before.
func TestExchange(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]int{"whole": 0, "longer than the buffer": 3 * bufferBytes, "chunks": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if long < 0 {
					w.(http.Flusher).Flush()
				}
				text := fmt.Sprintf("%s %s %s", r.Host, r.URL.Path, body) + strings.Repeat("x", max(0, long))
				for part := range strings.SplitAfterSeq(text, "/") {
					_, _ = io.WriteString(w, part)
				}
			}))
			defer s.Close()
			e := ask
			e.Answer = append(e.Answer[:len(e.Answer):len(e.Answer)], strings.Repeat("x", max(0, long))...)
			c, err := Dial(t.Context(), s.Listener.Addr().String(), e)
			require.NoError(t, err)
			defer c.Close()
			for number, owner := range map[int]int{0: 0, 1: MaxOwner, MaxNumber: 7} {
				c.Prepare(number, owner)
				require.NoError(t, c.Send())
				require.NoError(t, c.Await())
				require.NoError(t, c.Receive())
			}
		})
	}
}

// Each wrong answer is an error that says what is wrong.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"HTTP/1.1 200 OK\r\nContent-Length: 29\r\n\r\no0003.test /0003 1000000005xx": `body "o0003.test /0003 1000000005xx"`,
		"HTTP/1.1 200 OK\r\ncontent-length: 27\r\n\r\no0003.test /0003 1000000006":   `it must be 200 and "o0003.test /0003 1000000005"`,
		"HTTP/1.1 503 No\r\nContent-Length: 27\r\n\r\no0003.test /0003 1000000005":   "status 503",
		"HTTP/1.1 200 OK\r\n\r\n":                       errNoLength.Error(),
		"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n": `the answer has "Content-Length: -2"`,
		"SSH-2.0\r\n": `the answer begins with "SSH-2.0"`,
		"HTTP/1.1 200 OK\r\nContent-Length: 27\r\n\r\no0003.test":                   "read the body of the answer: EOF",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n0\r\nx\r\n": `"x" comes after the last chunk`,
		"": "read the answer: EOF",
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			c, err := Dial(t.Context(), l.Addr().String(), ask)
			require.NoError(t, err)
			defer c.Close()
			server, err := l.Accept()
			require.NoError(t, err)
			c.Prepare(5, 3)
			require.NoError(t, c.Send())
			r, err := http.ReadRequest(bufio.NewReader(server))
			require.NoError(t, err)
			_, err = io.Copy(io.Discard, r.Body)
			require.NoError(t, err)
			_, err = io.WriteString(server, answer)
			require.NoError(t, err)
			require.NoError(t, server.Close())
			require.ErrorContains(t, c.Receive(), want)
		})
	}
}
