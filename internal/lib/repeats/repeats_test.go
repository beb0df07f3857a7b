package repeats

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

// Each cause has a line at once, and then one in each interval with the number of times.
func TestCauseIsLoggedOnceInAWhile(t *testing.T) {
	var out bytes.Buffer
	l, at := New(zerolog.New(&out)), time.Unix(1000, 0)
	l.now = func() time.Time { return at }
	for range 1000 {
		l.Warn(errors.New("full"), "not stored").Str("event", "1").Send()
	}
	l.Error(nil, "set aside").Send()
	require.Equal(t, `{"level":"warn","message":"not stored","error":"full","event":"1"}`+"\n"+`{"level":"error","message":"set aside"}`+"\n",
		out.String())
	out.Reset()
	at = at.Add(Every)
	l.Warn(errors.New("full"), "not stored").Send()
	require.Equal(t, `{"level":"warn","message":"not stored","error":"full","times":1000}`+"\n", out.String())
}

// A publisher that makes each error different gets few lines, and takes little memory.
func TestManyCausesAreOne(t *testing.T) {
	var out bytes.Buffer
	l, at := New(zerolog.New(&out)), time.Unix(1000, 0)
	l.now = func() time.Time { return at }
	for i := range 100_000 {
		l.Warn(fmt.Errorf("no %d", i), "not stored").Send()
	}
	require.Equal(t, maxCauses+1, strings.Count(out.String(), "\n"))
	require.LessOrEqual(t, len(l.causes), maxCauses+1)
	var none *Log
	none.Warn(nil, "nothing").Send()
}
