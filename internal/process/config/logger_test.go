package config

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLoggerWritesJSONWhereThereIsNoTerminal(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, Config{LogLevel: "info", LogFormat: "auto"})
	require.NoError(t, err)
	log.Debug().Msg("not important enough")
	log.Info().Str("owner", "acme").Msg("hello")
	var line struct{ Level, Owner, Message, Time string }
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
	require.Equal(t, "info acme hello", line.Level+" "+line.Owner+" "+line.Message)
	at, err := time.Parse(time.RFC3339Nano, line.Time)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.Contains(t, line.Time, ".", "milliseconds tell the order of events")
}

func TestLoggerWritesForPeopleWhenAsked(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, Config{LogLevel: "debug", LogFormat: "console"})
	require.NoError(t, err)
	log.Debug().Str("owner", "acme").Msg("hello")
	require.Regexp(t, `^\d\d:\d\d:\d\d\.\d{3} DBG hello owner=acme\n$`, out.String())
	_, err = NewLogger(&out, Config{LogLevel: "loud"})
	require.Error(t, err)
}
