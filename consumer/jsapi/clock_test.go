package jsapi

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestClockTellsTheTimeOfTheServer(t *testing.T) {
	var k Clock
	began := time.Now()
	require.Equal(t, began, k.At(began), "of a server that nobody has asked nothing is known")
	deadline := began.Add(time.Minute)
	require.WithinDuration(t, deadline, k.Own(deadline), time.Millisecond)

	server := began.Add(-5 * time.Minute)
	k.Read(server, began, began.Add(200*time.Millisecond))
	require.Equal(t, server.Add(time.Hour), k.At(began.Add(time.Hour+100*time.Millisecond)))
	require.WithinDuration(t, deadline.Add(5*time.Minute), k.Own(deadline), time.Second)

	k.Read(server, began, began.Add(2*time.Second))
	k.Read(time.Time{}, began, began)
	require.Equal(t, server.Add(time.Hour), k.At(began.Add(time.Hour+100*time.Millisecond)),
		"what took long, and what says nothing, is not believed")
	k.Read(server.Add(time.Second), began, began)
	require.Equal(t, server.Add(time.Second), k.At(began))
}
