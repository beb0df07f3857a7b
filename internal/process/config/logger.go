package config

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// NewLogger makes the logger of the process, which writes to w. It writes text for people when w is a terminal or the
// configuration says so. Otherwise it writes one JSON object a line. c has been validated.
func NewLogger(w io.Writer, c Config) (zerolog.Logger, error) {
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		return zerolog.Logger{}, fmt.Errorf("log level: %w", err)
	}
	return zerolog.New(LogWriter(w, c)).Level(level).Hook(zerolog.HookFunc(stamp)), nil
}

// LogWriter takes messages as JSON, one per Write. It writes them to w in the configured format, without characters
// that control a terminal.
func LogWriter(w io.Writer, c Config) io.Writer {
	if c.LogFormat == "console" || c.LogFormat == "auto" && IsTerminal(w) {
		return zerolog.ConsoleWriter{
			Out: w, TimeFormat: "15:04:05.000", NoColor: !IsTerminal(w) || os.Getenv("NO_COLOR") != "",
			FormatPrepare: printableFields,
		}
	}
	return Printable(w)
}

// stamp adds the time in UTC with milliseconds. In zerolog itself, only a global variable can set this.
func stamp(e *zerolog.Event, _ zerolog.Level, _ string) {
	e.Str(zerolog.TimestampFieldName, time.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"))
}

// IsTerminal reports whether a stream, input or output, is a terminal.
func IsTerminal(stream any) bool {
	if t, ok := stream.(*terminal); ok {
		stream = t.w
	}
	f, ok := stream.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}
