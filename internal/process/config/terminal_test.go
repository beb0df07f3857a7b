package config

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

const hostile = "a\x1b]0;own\x07 \x9b31m \u009b2J \u202e\u2066 \x7f\r\nü\t"

func TestPrintable(t *testing.T) {
	const want = `a\u001b]0;own\u0007 ` + "\uFFFD" + `31m \u009b2J \u202e\u2066 \u007f` + "\nü\t"
	require.Equal(t, want, PrintableText(hostile))
	var at1, whole bytes.Buffer
	slow := Printable(&at1)
	for i := range len(hostile) { // also in the middle of a character
		n, err := slow.Write([]byte(hostile[i : i+1]))
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
	_, err := Printable(&whole).Write([]byte(hostile))
	require.NoError(t, err)
	require.Equal(t, want, at1.String())
	require.Equal(t, want, whole.String())
}

// Messages for people have colors, but not those of workers; messages for programs stay what they were.
func TestLogsDoNotSteerTheTerminal(t *testing.T) {
	for format, wants := range map[string]string{"console": `own\u0007`, "json": `"message":"a\u001b]0;own\u0007`} {
		var out bytes.Buffer
		log, err := NewLogger(&out, Config{LogFormat: format, LogLevel: "info"})
		require.NoError(t, err)
		log.Info().Str("owner", hostile).Strs("list", []string{hostile}).Dict("deep", zerolog.Dict().Str("x", hostile)).
			Msg(hostile)
		require.Contains(t, out.String(), wants)
		for _, r := range out.String() {
			require.True(t, !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) || r == '\n' || r == '\t', "%s: %q",
				format, out.String())
		}
		if format == "json" {
			var line map[string]any
			require.NoError(t, json.Unmarshal(out.Bytes(), &line))
			require.Equal(t, strings.ToValidUTF8(hostile, "\uFFFD"), line["message"])
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add([]byte(hostile), 3)
	f.Fuzz(func(t *testing.T, data []byte, at int) {
		var out bytes.Buffer
		w := Printable(&out)
		at = min(max(at, 0), len(data))
		_, _ = w.Write(data[:at])
		_, _ = w.Write(data[at:])
		require.True(t, utf8.Valid(out.Bytes()))
		for _, r := range out.String() {
			require.False(t, r == '\r' || unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r))
		}
		text, err := json.Marshal(string(data))
		require.NoError(t, err)
		var before, after string
		require.NoError(t, json.Unmarshal(text, &before))
		require.NoError(t, json.Unmarshal([]byte(PrintableText(string(text))), &after))
		require.Equal(t, before, after)
	})
}
