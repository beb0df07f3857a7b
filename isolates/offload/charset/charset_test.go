package charset_test

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/isolates/offload/charset"
)

var names = []string{"gbk", "gb18030", "big5", "euc-jp", "iso-2022-jp", "shift_jis", "euc-kr", "ibm866", "windows-1255",
	"iso-8859-3", "koi8-u"}

// replacementOfGB18030 is the encoding of U+FFFD itself. It is well-formed, unlike bytes that become U+FFFD.
const replacementOfGB18030 = "\x84\x31\xa4\x37"

func decode(t testing.TB, name string, in string) string {
	t.Helper()
	r, err := charset.Decode(name, 0, []byte(in), true)
	require.NoError(t, err)
	require.Zero(t, r.Rest)
	if !strings.Contains(in, replacementOfGB18030) {
		require.Equal(t, r.Wrong, bytes.ContainsRune(r.Text, utf8.RuneError))
	}
	return string(r.Text)
}

func TestEveryPairOfGB18030IsACharacter(t *testing.T) {
	seen := map[string]bool{}
	for lead := 0x81; lead <= 0xfe; lead++ {
		for trail := 0x40; trail <= 0xfe; trail++ {
			if trail == 0x7f {
				continue
			}
			in := string([]byte{byte(lead), byte(trail)})
			text := decode(t, "gb18030", in)
			require.NotContains(t, text, "\ufffd", "% x", in)
			if in != "\xa3\xa0" { // U+3000, which has another pair
				require.False(t, seen[text], "% x is %q again", in, text)
			}
			seen[text] = true
		}
	}
	require.Len(t, seen, 126*190-1)
}

func TestFourBytesOfGB18030(t *testing.T) {
	for in, want := range map[string]string{
		"\x81\x30\x81\x30": "\u0080", "\x81\x35\xf4\x37": "\ue7c7", "\x84\x31\xa4\x37": "\ufffd",
		"\x84\x31\xa4\x39": "\uffff",
		"\x90\x30\x81\x30": "\U00010000", "\xe3\x32\x9a\x35": "\U0010ffff", "\xe3\x32\x9a\x36": "\ufffd",
		"\x84\x31\x82\x36": "\ufe10",
		"\x81\x30\x81 ":    "\ufffd0\ufffd ", "\x81\x30a": "\ufffd0a", "\x81\x30": "\ufffd", "\x81\x30\x81": "\ufffd",
		"\x81\x20": "\ufffd ",
	} {
		require.Equal(t, want, decode(t, "gb18030", in), "% x", in)
	}
}

func TestTheReplacementCharacterOfGB18030IsNoMistake(t *testing.T) {
	for _, name := range []string{"gbk", "gb18030"} {
		r, err := charset.Decode(name, 0, []byte(replacementOfGB18030), true)
		require.NoError(t, err)
		require.Equal(t, "\ufffd", string(r.Text))
		require.False(t, r.Wrong)
	}
}

func TestUnknownEncodings(t *testing.T) {
	for _, name := range []string{"", "utf-8", "replacement", "GBK"} {
		_, err := charset.Decode(name, 0, nil, true)
		require.Error(t, err)
		require.False(t, charset.Known(name))
	}
	require.True(t, charset.Known("windows-874"))
}

// FuzzDecode cuts its input in two and three pieces: the text must be the same as that of the whole.
func FuzzDecode(f *testing.F) {
	f.Add(0, []byte("\x81\x30\x81\x30 \xa1\xa1"), 3)
	f.Add(3, []byte("\x8f\xa2\xaf\x8e\xb1\xa4\xa2"), 2)
	f.Add(4, []byte("\x1b$B$\"\x1b(Jx\x1b(I1\x1b(B\x1b$"), 5)
	f.Fuzz(func(t *testing.T, kind int, in []byte, at int) {
		name := names[uint(kind)%uint(len(names))]
		whole := decode(t, name, string(in))
		require.True(t, utf8.ValidString(whole))
		at = int(uint(at) % uint(len(in)+1))
		var text strings.Builder
		var pending []byte
		state := 0
		for _, piece := range [][]byte{in[:at/2], in[at/2 : at], in[at:], nil} {
			pending = append(pending, piece...)
			r, err := charset.Decode(name, state, pending, piece == nil)
			require.NoError(t, err)
			require.Less(t, r.State, 0xd800, "a code unit holds it")
			require.LessOrEqual(t, r.Rest, 3)
			text.Write(r.Text)
			pending, state = bytes.Clone(pending[len(pending)-r.Rest:]), r.State
		}
		require.Equal(t, whole, text.String())
	})
}
