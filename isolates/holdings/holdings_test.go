package holdings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Bytes count for their run, its tenant and all, until they are uncounted.
func TestBytesAreCounted(t *testing.T) {
	var h Holdings
	a, b, other := &Holder{Tenant: "acme"}, &Holder{Tenant: "acme"}, &Holder{Tenant: "other"}
	h.Add(a, 5)
	h.Add(b, 7)
	h.Add(other, 1)
	require.EqualValues(t, 5, a.Held())
	require.EqualValues(t, 12, h.Of("acme"))
	require.EqualValues(t, 13, h.Total())
	require.Equal(t, 2, h.Tenants())
	h.Add(a, -5)
	h.Add(b, -7)
	require.Zero(t, h.Of("acme"))
	require.Equal(t, 1, h.Tenants(), "a tenant that holds nothing is forgotten")
}

// Nothing is counted for a run that was forgotten, also when its bytes are uncounted late.
func TestForgottenRunsHoldNothing(t *testing.T) {
	var h Holdings
	a := &Holder{Tenant: "acme"}
	h.Add(a, 5)
	h.Forget(a)
	h.Add(a, -5)
	h.Add(a, 9)
	require.Zero(t, a.Held())
	require.Zero(t, h.Total())
	require.Zero(t, h.Tenants())
}

// A change is told when the total has moved by a step since the last time, up or down.
func TestLargeChangesAreTold(t *testing.T) {
	var h Holdings
	var told []int64
	h.OnChange(func(total int64) { told = append(told, total) })
	a := &Holder{Tenant: "acme"}
	h.Add(a, step-1)
	h.Add(a, 1)
	h.Add(a, step/2)
	h.Add(a, -step)
	h.Forget(a)
	require.Equal(t, []int64{step, 0}, told)
}
