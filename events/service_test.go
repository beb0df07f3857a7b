package events

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Calls that wait for one another count however many trees the workers in between made.
func TestServiceDepth(t *testing.T) {
	t.Parallel()
	var first ServiceTree
	var from *ServiceCall
	for range MaxServiceDepth {
		c, err := first.Begin(from, "w", ServiceTarget{Worker: "w"}, "m")
		require.NoError(t, err)
		from = c
	}
	_, err := new(ServiceTree).Begin(from, "w", ServiceTarget{Worker: "w"}, "m")
	require.ErrorIs(t, err, ErrServiceDepth)
	require.EqualValues(t, MaxServiceDepth, first.under.Load(), "a call that is refused does not count")
	require.True(t, from.From("w"))
	require.False(t, from.From("v"))
}

// Calls at once and calls in all are counted in the tree of the first caller. Concurrent callers do not exceed them.
func TestServiceCalls(t *testing.T) {
	t.Parallel()
	var tree ServiceTree
	root, err := tree.Begin(nil, "a", ServiceTarget{Worker: "b"}, "")
	require.NoError(t, err)
	var mu sync.Mutex
	var open []*ServiceCall
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			c, err := new(ServiceTree).Begin(root, "b", ServiceTarget{Worker: "c"}, "")
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				open = append(open, c)
			}
		})
	}
	group.Wait()
	require.Len(t, open, MaxServiceCallsAtOnce-1)
	_, err = tree.Begin(nil, "a", ServiceTarget{Worker: "b"}, "")
	require.ErrorIs(t, err, ErrServiceAtOnce)
	for _, c := range open {
		c.End()
	}
	for range MaxServiceCalls - MaxServiceCallsAtOnce {
		c, err := tree.Begin(nil, "a", ServiceTarget{Worker: "b"}, "")
		require.NoError(t, err)
		c.End()
	}
	_, err = tree.Begin(nil, "a", ServiceTarget{Worker: "b"}, "")
	require.ErrorIs(t, err, ErrServiceCalls)
	root.End()
	require.Zero(t, tree.under.Load())
}

// Two calls of one caller do not share the list of callers.
func TestServiceCallersAreNotShared(t *testing.T) {
	t.Parallel()
	var tree ServiceTree
	root, err := tree.Begin(nil, "a", ServiceTarget{Worker: "b"}, "")
	require.NoError(t, err)
	one, err := tree.Begin(root, "b", ServiceTarget{Worker: "c"}, "")
	require.NoError(t, err)
	two, err := tree.Begin(root, "x", ServiceTarget{Worker: "c"}, "")
	require.NoError(t, err)
	require.True(t, one.From("b") && !one.From("x") && two.From("x") && !two.From("b"))
}

func TestParseServiceTarget(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]ServiceTarget{
		"auth": {"auth", ""}, "auth#Admin": {"auth", "Admin"}, "a#$_1": {"a", "$_1"},
		"a#" + strings.Repeat("x", 128): {"a", strings.Repeat("x", 128)},
	} {
		got, err := ParseServiceTarget(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, text, got.String())
	}
	for _, bad := range []string{"", "#", "#A", "a#", "a#default", "a#1", "a#A#B", "a#a.b", "a#é", "a#a b", "other/auth",
		"../auth", "a.b", "a*", "a\x00", "a#" + strings.Repeat("x", 129)} {
		_, err := ParseServiceTarget(bad)
		require.Error(t, err, bad)
	}
}

func FuzzParseServiceTarget(f *testing.F) {
	for _, text := range []string{"auth", "auth#Admin", "other/auth", "a#default", "a#A#B", "#", "a#$"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseServiceTarget(text)
		if err != nil {
			return
		}
		if target.String() != text || !ValidName(target.Worker) || target.Entrypoint == "default" ||
			strings.ContainsAny(target.Entrypoint, "#./ ") {
			t.Fatalf("%q is %+v", text, target)
		}
	})
}
