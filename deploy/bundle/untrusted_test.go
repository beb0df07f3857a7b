package bundle_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

func TestBundlesOfOthers(t *testing.T) {
	t.Parallel()
	good := func() *bundle.Bundle {
		return &bundle.Bundle{Code: "x", File: "wörk er.js", SourceMap: []byte(`{"version":3,"sources":["src/ä b.ts"],"mappings":"AAAA"}`)}
	}
	require.NoError(t, bundle.Check(good()))
	for want, change := range map[string]func(*bundle.Bundle){
		"no code":            func(b *bundle.Bundle) { b.Code = "" },
		"bytes of code":      func(b *bundle.Bundle) { b.Code = strings.Repeat("x", bundle.MaxBundle+1) },
		"source map has 33":  func(b *bundle.Bundle) { b.SourceMap = make([]byte, bundle.MaxSourceMap+1) },
		"UTF-8":              func(b *bundle.Bundle) { b.Code = "\xff" },
		`file "a\u202eb.js"`: func(b *bundle.Bundle) { b.File = "a\u202eb.js" },
		`file "a\\b.js"`:     func(b *bundle.Bundle) { b.File = `a\b.js` },
		`file "a.ts"`:        func(b *bundle.Bundle) { b.File = "a.ts" },
		"sources[0]":         func(b *bundle.Bundle) { b.SourceMap = []byte(`{"version":3,"sources":["a\nb"],"mappings":"AAAA"}`) },
		"more than 2000000 mappings": func(b *bundle.Bundle) {
			b.SourceMap = []byte(`{"version":3,"sources":["a"],"mappings":"` + strings.Repeat("A,", 2_000_001) + `"}`)
		},
	} {
		b := good()
		change(b)
		require.ErrorContains(t, bundle.Check(b), want)
	}
}
