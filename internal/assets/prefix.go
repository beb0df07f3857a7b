package assets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/guard"
)

// PrefixError says that a stream is there and belongs to a fleet of another prefix.
type PrefixError struct {
	Stream     string
	Have, Want string // first tokens of its subjects
}

func (e *PrefixError) Error() string {
	return fmt.Sprintf("stream %s belongs to a fleet with PINWHEEL_PREFIX=%s, and this one has %s: give each fleet a NATS account of its own, or see in docs/operations.md how a fleet changes its prefix",
		e.Stream, e.Have, e.Want)
}

// CheckPrefix returns a *PrefixError when one of these streams is there and belongs to a fleet of another prefix. Where JetStream does not say it
// returns nil: whoever makes the streams finds out.
func CheckPrefix(ctx context.Context, js jetstream.JetStream, wanted []Asset) error {
	ctx, cancel := context.WithTimeout(ctx, 2*firstPatience)
	defer cancel()
	for _, a := range wanted {
		if a.Stream == nil {
			continue
		}
		info, err := streamOf(ctx, js, a.Stream.Name)
		if err != nil {
			continue
		}
		if err := samePrefix(info.Config, *a.Stream); err != nil {
			return err
		}
	}
	return nil
}

// samePrefix compares the first tokens of a stream's subjects. Streams without subjects, as mirrors are, have none.
func samePrefix(have, want jetstream.StreamConfig) error {
	if guard.FleetPrefix.Off() || len(have.Subjects) == 0 || len(want.Subjects) == 0 {
		return nil
	}
	prefix := firstToken(want.Subjects[0])
	if slices.ContainsFunc(have.Subjects, func(s string) bool { return firstToken(s) == prefix }) {
		return nil
	}
	return &PrefixError{want.Name, firstToken(have.Subjects[0]), prefix}
}

func firstToken(subject string) string {
	token, _, _ := strings.Cut(subject, ".")
	return token
}

// Final reports whether it makes no difference how often one tries to make an asset.
func Final(err error) bool {
	var frozen *FrozenError
	var prefix *PrefixError
	return errors.As(err, &frozen) || errors.As(err, &prefix)
}
