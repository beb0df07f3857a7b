package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// An owner has one deploy at a time in a process, and a process two. Time that modules take is the owner's.
func TestDeploysOfOwnersAreLimited(t *testing.T) {
	t.Parallel()
	u := newUploads(ofDeploys)
	now := time.Now()
	code := func(owner string) int {
		err := u.enter(owner, now)
		if err == nil {
			return 0
		}
		var refused *Error
		require.True(t, errors.As(err, &refused))
		return refused.Code
	}
	require.Zero(t, code("acme"))
	require.Equal(t, http.StatusServiceUnavailable, code("acme"), "one at a time")
	require.Zero(t, code("beta"))
	require.Equal(t, http.StatusServiceUnavailable, code("gamma"), "two in a process")
	u.leave("beta", 10*time.Millisecond, now)
	require.Zero(t, code("gamma"))
	u.leave("gamma", time.Millisecond, now)
	u.leave("acme", 15*time.Second, now)
	require.Zero(t, code("acme"))
	u.leave("acme", time.Hour, now) // never more than the burst
	require.Equal(t, http.StatusTooManyRequests, code("acme"))
	require.Zero(t, code("beta"), "others are not charged")
	now = now.Add(140 * time.Second)
	require.Equal(t, http.StatusTooManyRequests, code("acme"))
	now = now.Add(11 * time.Second)
	require.Zero(t, code("acme"), "15 s were owed, and a tenth of the time is given")
	u.leave("acme", 0, now)

	for i := range knownOwners { // owners that used a little are remembered until they have all of their time again
		owner := fmt.Sprint("o", i)
		if code(owner) == 0 {
			u.leave(owner, time.Second, now)
		}
	}
	require.LessOrEqual(t, u.time.Len(), knownOwners)
	require.Equal(t, http.StatusServiceUnavailable, code("late"))
	now = now.Add(time.Hour)
	require.Zero(t, code("late"))
	require.Len(t, u.busy, 2, "beta's runs")
	require.Zero(t, u.time.Len())
}

// What a module writes while it is loaded is bounded.
func TestOutputOfAModuleIsBounded(t *testing.T) {
	t.Parallel()
	c := &moduleCheck{}
	for range 1000 {
		c.log(events.LogLine{Level: "info", Owner: "acme", Worker: "w", Text: strings.Repeat("ü", 5000)})
	}
	out := c.output()
	require.Len(t, out, maxLines+1)
	require.Less(t, len(out[0]), maxLine+50)
	require.Equal(t, "…", out[maxLines])
}

// hostileCheck is the check of a module that costs its process.
type hostileCheck struct{ Process }

func (h hostileCheck) OpenChecker(func(events.LogLine)) Checker { return h }

func (hostileCheck) Check(context.Context, *workers.Worker) (workers.Handlers, error) {
	return workers.Handlers{}, events.Fail(events.ReasonCPU, "it does not end")
}

func (hostileCheck) Close() bool { return true }

// A module whose check cost a process is refused for a while, and from the second one on all modules of its owner are.
func TestModulesThatCostProcessesAreRefused(t *testing.T) {
	t.Parallel()
	var bans checkBans
	check := func(owner, hash string) error {
		c := moduleCheck{process: hostileCheck{}, bans: &bans}
		_, err := c.Check(t.Context(), &workers.Worker{Owner: owner, Name: "w", Hash: hash})
		return err
	}
	require.ErrorContains(t, check("acme", "a"), "it does not end")
	err := check("acme", "a")
	require.Equal(t, http.StatusTooManyRequests, codeOf(err))
	require.ErrorContains(t, err, "this module has ended processes that loaded it, 1 times lately: it is refused for 1m0s more")
	require.ErrorContains(t, check("beta", "a"), "it does not end", "another owner's")
	require.ErrorContains(t, check("acme", "b"), "it does not end")
	require.ErrorContains(t, check("acme", "c"), "modules of owner acme have ended processes that loaded them, 2 times lately: they are refused for 1m0s more")

	now := time.Now().Add(2 * time.Minute)
	require.NoError(t, bans.refuse("acme", "a", now))
	bans.cost("acme", "a", now)
	for _, hash := range []string{"a", "d"} {
		require.ErrorContains(t, bans.refuse("acme", hash, now), "for 2m0s more")
	}
	later := now.Add(longestCheckBan + checkBanKept + time.Minute)
	bans.cost("gamma", "x", later)
	require.Len(t, bans.of, 2, "old ones are forgotten")
}
