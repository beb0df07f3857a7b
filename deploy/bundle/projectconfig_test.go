package bundle

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValuesOfKey(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{"extends": "a"}`:                     {"a"},
		`{"extends": ["a", "b\/c"], "x": "d"}`: {"a", "b/c"},
		"{// \"extends\": \"no\"\n /* \" */ 'x', \"extends\" : \"\\u0061\",}": {"a"},
		"// \u2028 {\"extends\": \"a\"}":                                      {"a"},
		`{"extends": "a", "extends": "b"}`:                                    {"a", "b"},
		`{"a": "extends"}`:                                                    nil,
		`{"extends": [`:                                                       nil,
		`"extends":`:                                                          nil,
		`{"extends": "a`:                                                      {"a"},
		`/*`:                                                                  nil,
		`"`:                                                                   nil,
	} {
		require.ElementsMatch(t, want, valuesOfKey([]byte(text), "extends"), text)
	}
}

func FuzzJSONTokens(f *testing.F) {
	f.Add([]byte(`{"extends": ["a", "b"], "x": {"y": [1, 2.5e3, null, true]}}`))
	f.Add([]byte("// c\n{\"a\\\"\": \"\\u2028\", /* x */}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		all := stringsOf(text)
		var value any
		if json.Unmarshal(text, &value) != nil {
			return
		}
		have := map[string]bool{}
		for _, s := range all {
			have[s] = true
		}
		var look func(v any)
		look = func(v any) {
			switch v := v.(type) {
			case string:
				require.True(t, have[v], "%q", v)
			case []any:
				for _, x := range v {
					look(x)
				}
			case map[string]any:
				for k, x := range v {
					look(k)
					look(x)
				}
			}
		}
		look(value)
	})
}
