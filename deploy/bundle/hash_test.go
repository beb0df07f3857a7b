package bundle_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

func TestHashCoversAllThatMatters(t *testing.T) {
	t.Parallel()
	base := bundle.Bundle{Code: "a", File: "b", SourceMap: []byte("c")}
	seen := map[string]bool{}
	for _, change := range []func(*bundle.Bundle){
		func(*bundle.Bundle) {},
		func(b *bundle.Bundle) { b.Code, b.File = "", "ba" },
		func(b *bundle.Bundle) { b.SourceMap = nil },
		func(b *bundle.Bundle) { b.Vars = map[string]string{"A": "1"} },
		func(b *bundle.Bundle) { b.Queues = map[string]string{"A": "1"} },
		func(b *bundle.Bundle) { b.KV = map[string]string{"A": "1"} },
		func(b *bundle.Bundle) { b.Objects = map[string]string{"A": "1"} },
		func(b *bundle.Bundle) { b.VersionBinding = "A" },
		func(b *bundle.Bundle) { b.NATS = map[string]workers.NATSSubjects{"A": {Publish: []string{"x"}}} },
		func(b *bundle.Bundle) { b.Limits.HeapMB = 64 },
		func(b *bundle.Bundle) { b.Retries.Fetch = true },
	} {
		b := base
		change(&b)
		h, err := b.Hash()
		require.NoError(t, err)
		require.False(t, seen[h])
		seen[h] = true
	}
	b := base
	b.Spec = workers.Spec{Mode: workers.Pinned, Bindings: workers.Bindings{Vars: map[string]string{}}}
	h, err := b.Hash()
	require.NoError(t, err)
	require.True(t, seen[h], "saying the default changes nothing")
}

// The limit is part of what a version is.
func TestConcurrencyIsHashed(t *testing.T) {
	t.Parallel()
	one, two := bundle.Bundle{Code: "x", File: "x.js"}, bundle.Bundle{Code: "x", File: "x.js",
		Spec: workers.Spec{Concurrency: 1}}
	a, err := one.Hash()
	require.NoError(t, err)
	b, err := two.Hash()
	require.NoError(t, err)
	require.NotEqual(t, a, b)
}
