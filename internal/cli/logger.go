package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// NewLogger makes the logger of the process, writing to w: for people when w is a terminal or the
// configuration says so, one JSON object a line otherwise. c has been validated.
func NewLogger(w io.Writer, c Config) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("log level: %w", err)
	}
	return zerolog.New(logWriter(w, c)).Level(level).Hook(zerolog.HookFunc(stamp)), nil
}

// logWriter takes messages as JSON, one with each Write, and writes them to w as the configuration says.
func logWriter(w io.Writer, c Config) io.Writer {
	if c.LogFormat == "console" || c.LogFormat == "auto" && isTerminal(w) {
		return zerolog.ConsoleWriter{Out: w, TimeFormat: "15:04:05.000", NoColor: !isTerminal(w) || os.Getenv("NO_COLOR") != ""}
	}
	return w
}

// stamp adds the time in UTC with milliseconds. zerolog's own way to say so is a global variable.
func stamp(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

// isTerminal is for what is read and what is written.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
