package resources

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/lib/guard"
)

// PrefixError says that a stream exists and belongs to a fleet with another prefix.
type PrefixError struct {
	Stream     string
	Have, Want string // first tokens of its subjects
}

func (e *PrefixError) Error() string {
	return fmt.Sprintf("stream %s belongs to a fleet with PINWHEEL_PREFIX=%s, and this one has %s: "+
		"give each fleet a NATS account of its own, or see in docs/guides/operate.md how a fleet changes its prefix",
		e.Stream, e.Have, e.Want)
}

// CheckPrefix returns a *PrefixError when one of these streams exists and belongs to a fleet with another prefix. It
// returns nil when JetStream gives no answer: the creation of the streams finds out.
func CheckPrefix(ctx context.Context, js jetstream.JetStream, wanted []Resource) error {
	ctx, cancel := context.WithTimeout(ctx, 2*firstTimeout)
	defer cancel()
	for _, r := range wanted {
		if r.Stream == nil {
			continue
		}
		info, err := streamOf(ctx, js, r.Stream.Name)
		if err != nil {
			continue
		}
		if err := samePrefix(info.Config, *r.Stream); err != nil {
			return err
		}
	}
	return nil
}

// samePrefix compares the first tokens of a stream's subjects. Streams without subjects, for example mirrors, are not
// compared.
func samePrefix(have, want jetstream.StreamConfig) error {
	has, wants := subjects(have), subjects(want)
	if guard.FleetPrefix.Off() || len(has) == 0 || len(wants) == 0 {
		return nil
	}
	prefix := firstToken(wants[0])
	if slices.ContainsFunc(has, func(s string) bool { return firstToken(s) == prefix }) {
		return nil
	}
	return &PrefixError{want.Name, firstToken(has[0]), prefix}
}

// subjects are those of a stream, and of what it copies from other streams.
func subjects(c jetstream.StreamConfig) []string {
	all := slices.Clone(c.Subjects)
	for _, s := range c.Sources {
		for _, t := range s.SubjectTransforms {
			all = append(all, t.Source)
		}
	}
	return all
}

func firstToken(subject string) string {
	token, _, _ := strings.Cut(subject, ".")
	return token
}

// Final reports whether another try to create a resource gives the same error.
func Final(err error) bool {
	var immutable *ImmutableError
	var prefix *PrefixError
	return errors.As(err, &immutable) || errors.As(err, &prefix)
}
