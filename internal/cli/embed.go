package cli

import (
	"context"
	"io"

	"github.com/rs/zerolog"
)

// What follows is for programs that have a fleet or the command inside them, as tests do.

// MainWith is Main for a caller that has the configuration: the environment is not read.
func MainWith(cfg Config, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	load := func() (Config, error) { return cfg, cfg.Validate() }
	return run(args, &env{in: stdin, out: stdout, err: stderr, load: load})
}

// Serve runs one process of the fleet until ctx is done and it has drained. up, if not nil, is called once it takes
// events, with where clients connect and where the admin port listens ("" = nowhere).
func Serve(ctx context.Context, cfg Config, log zerolog.Logger, up func(url, admin string)) error {
	return serve(ctx, cfg, log, func(f *fleet, admin string) {
		if up != nil {
			up(f.url(), admin)
		}
	})
}
