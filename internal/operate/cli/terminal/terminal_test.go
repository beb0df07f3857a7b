package terminal_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
)

func open(in string) (t *terminal.Terminal, out, err *bytes.Buffer) {
	out, err = &bytes.Buffer{}, &bytes.Buffer{}
	return terminal.New(strings.NewReader(in), out, err), out, err
}

func TestALongListComesInBlocks(t *testing.T) {
	t.Parallel()
	to, out, _ := open("")
	l := to.List(false, "N", "TEXT")
	for i := range 200 {
		require.Empty(t, out.String(), i)
		require.NoError(t, l.Add(nil, i, "a"))
	}
	require.Equal(t, 201, strings.Count(out.String(), "\n"), "the first rows appear before the end is read")
	require.NoError(t, l.Add(nil, "long enough", "b"))
	require.NoError(t, l.End())
	require.True(t, strings.HasPrefix(out.String(), "N    TEXT\n0    a\n"), out.String()[:20])
	require.True(t, strings.HasSuffix(out.String(), "199  a\nlong enough  b\n"))
}

func TestAListAsJSON(t *testing.T) {
	t.Parallel()
	to, out, _ := open("")
	l := to.List(true, "N")
	require.NoError(t, l.Add(map[string]string{"a": "<b>\x1b"}, "not shown"))
	require.NoError(t, l.End())
	require.NoError(t, to.Object([]int{1}))
	require.Equal(t, `{"a":"<b>\u001b"}`+"\n[1]\n", out.String())
}

// What is for people is printable. Data and what is drawn go to a file as they are.
func TestDataIsNotChanged(t *testing.T) {
	t.Parallel()
	to, out, _ := open("")
	require.NoError(t, to.Say("%s", "\x1b[2J"))
	fmt.Fprint(to.Data(), "\x1b[2J")
	fmt.Fprint(to.Raw.Out, "\x1b[K")
	require.Equal(t, `\u001b[2J`+"\n\x1b[2J\x1b[K", out.String())
}

func TestAsks(t *testing.T) {
	t.Parallel()
	for answer, yes := range map[string]bool{"y\n": true, " YES \n": true, "n\n": false, "\n": false, "": false} {
		to, out, err := open(answer)
		require.Equal(t, yes, to.Asks("sure?"), "%q", answer)
		require.Empty(t, out.String())
		require.Equal(t, "sure? [y/N] ", err.String())
	}
	to, _, _ := open("secret")
	text, err := to.Typed("value: ")
	require.NoError(t, err)
	require.Nil(t, text, "only a terminal is asked")
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(path, []byte("four"), 0o600))
	to, _, _ := open("input")
	data, err := to.ReadFile(path, "value", 4)
	require.NoError(t, err)
	require.Equal(t, "four", string(data))
	_, err = to.ReadFile(path, "value", 3)
	require.EqualError(t, err, "the value has more than 3 bytes")
	data, err = to.ReadFile("", "value", 5)
	require.NoError(t, err)
	require.Equal(t, "input", string(data))
}

func TestEdit(t *testing.T) {
	to, out, _ := open("")
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	_, err := to.Edit(t.Context(), nil)
	require.ErrorIs(t, err, terminal.ErrNoEditor)
	t.Setenv("EDITOR", `echo more >> "$1"; echo drawn; true`)
	edited, err := to.Edit(t.Context(), []byte("text "))
	require.NoError(t, err)
	require.Equal(t, "text more", string(edited), "the line break of the editor is none of the text")
	require.Equal(t, "drawn\n", out.String())
	edited, err = to.Edit(t.Context(), []byte("line\n"))
	require.NoError(t, err)
	require.Equal(t, "line\nmore\n", string(edited))
	t.Setenv("EDITOR", "false")
	_, err = to.Edit(t.Context(), nil)
	require.EqualError(t, err, `editor "false": exit status 1`)
}
