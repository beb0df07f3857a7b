package terminal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
)

func TestLinesHaveColorsByWhatTheyBeginWith(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"12:00:00.000 event dev/w  task  ✗ exception  3ms  event 1, attempt 1  retry in 200 ms": "\x1b[2m12:00:00.000\x1b[0m \x1b[36mevent\x1b[0m dev/w  task  \x1b[31m✗ exception\x1b[0m  3ms  event 1, attempt 1  retry in 200 ms",
		"12:00:00.000 event dev/w  GET /  200  3ms":                                             "\x1b[2m12:00:00.000\x1b[0m \x1b[36mevent\x1b[0m dev/w  GET /  \x1b[32m200\x1b[0m  3ms",
		"12:00:00.000Z event a/w  fetch  404 ok  3ms":                                           "\x1b[2m12:00:00.000Z\x1b[0m \x1b[36mevent\x1b[0m a/w  fetch  \x1b[33m404 ok\x1b[0m  3ms",
		"12:00:00.000 error a/w  text":                                                          "\x1b[2m12:00:00.000\x1b[0m \x1b[31merror\x1b[0m a/w  text",
		"warn  streams       text":                                                              "\x1b[33mwarn\x1b[0m  streams       text",
		"ok    nats          text":                                                              "\x1b[32mok\x1b[0m    nats          text",
		"✗ a.js":                                                                                "\x1b[31m✗ a.js\x1b[0m",
		"w.js:1:4: warning: @ai means nothing here":                                             "w.js:1:4: \x1b[33mwarning:\x1b[0m @ai means nothing here",
		"what a worker says":                                                                    "what a worker says",
	} {
		require.Equal(t, want, terminal.Paint(line))
	}
}
