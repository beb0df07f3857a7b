package percent

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEscape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "/a": "/a", "/%41": "/%41", "/100%": "/100%25", "/%": "/%25", "/%4": "/%254", "/%zz%c3%BC": "/%25zz%c3%BC",
		"/%%41": "/%25%41", "/%4%41": "/%254%41",
	} {
		require.Equal(t, want, Escape(text))
		require.Equal(t, want, Escape(want), "twice")
	}
}
