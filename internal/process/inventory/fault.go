package inventory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// FaultError says that a process cannot work with its configuration, or with NATS as it is: another try gives the same.
// Its text names the variable of the environment.
type FaultError struct{ Err error }

func (e *FaultError) Error() string { return e.Err.Error() }

func (e *FaultError) Unwrap() error { return e.Err }

// ExitCode is the exit code of a process that ended with a *FaultError: EX_CONFIG of sysexits.h.
const ExitCode = 78

// JetStream's codes for what does not change by itself.
const (
	codeAccountLimit  = 10002
	codeNoStorage     = 10047
	codeNoMemory      = 10028
	codeStreamLimit   = 10027
	codeNoReplicas    = 10074
	codeOverlap       = 10065
	codeNotEnabled    = 10076
	codeNotForAccount = 10039
)

// Fault returns err as a *FaultError if it is one: the error of a process of cfg that could not start. nc is its
// connection, or nil. Every other error may pass.
func Fault(cfg config.Config, nc *nats.Conn, err error) error {
	var known *FaultError
	var path *fs.PathError
	switch {
	case err == nil, errors.As(err, &known), errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired):
		return &FaultError{fmt.Errorf("%w: NATS refuses %s", err, identity(cfg))}
	case errors.As(err, &path), resources.Final(err):
		return &FaultError{err}
	}
	if words := inWords(cfg, err); words != "" {
		return &FaultError{fmt.Errorf("%s (%w)", words, err)}
	}
	return faultOfConnection(nc, err)
}

// identity names the variables that say who connects.
func identity(cfg config.Config) string {
	for _, v := range []struct{ name, value string }{
		{"PINWHEEL_NATS_CREDS", cfg.NatsCreds}, {"PINWHEEL_NATS_USER and PINWHEEL_NATS_PASSWORD", cfg.NatsUser},
		{"PINWHEEL_NATS_TOKEN", cfg.NatsToken},
		{"PINWHEEL_NATS_NKEY", cfg.NatsNkey}, {"PINWHEEL_NATS_CONTEXT", cfg.NatsContext},
		{"PINWHEEL_NATS_CERT", cfg.NatsCert},
	} {
		if v.value != "" {
			return v.name
		}
	}
	return "a client without credentials: set PINWHEEL_NATS_CREDS, _USER, _TOKEN, _NKEY or _CONTEXT, or put them in PINWHEEL_NATS_URL"
}

// inWords says what an answer of JetStream means for an operator; "" = it may pass.
func inWords(cfg config.Config, err error) string {
	var api *jetstream.APIError
	if !errors.As(err, &api) {
		return ""
	}
	switch api.ErrorCode {
	case codeNoReplicas:
		return fmt.Sprintf("PINWHEEL_REPLICAS is %d, and this NATS is one server, which keeps one copy: connect to a cluster of %[1]d servers, or set it to 1", cfg.Replicas)
	case codeNoStorage, codeAccountLimit, codeNoMemory:
		return fmt.Sprintf("JetStream cannot reserve what %s: give nats-server more storage (max_file_store, or the limit of the account), or lower that", sizeOf(cfg, err))
	case codeStreamLimit:
		return "the account may have no more streams: raise its limit"
	case codeOverlap:
		return fmt.Sprintf("PINWHEEL_PREFIX is %s, and another stream of this account has subjects that begin so: give the fleet an account of its own", cfg.Prefix)
	case codeNotEnabled, codeNotForAccount:
		return "JetStream is off for this account: PINWHEEL_NATS_URL must lead to a nats-server with a jetstream block, and the account must have it"
	}
	return ""
}

// sizeOf names the variable that asks for the storage.
func sizeOf(cfg config.Config, err error) string {
	var failed *resources.Error
	if errors.As(err, &failed) {
		name := VariableOf(failed.Resource, "max_bytes")
		for _, s := range settings() {
			if s.variable == name {
				return fmt.Sprintf("%s is (%s)", name, shown(s.of(&cfg)))
			}
		}
	}
	return fmt.Sprintf("the fleet asks for (PINWHEEL_MAX_BYTES is %s, PINWHEEL_DEAD_LETTER_BYTES %s, PINWHEEL_WORKERS_MAX_BYTES %s, PINWHEEL_ASSETS_MAX_BYTES %s)", cfg.MaxBytes, cfg.DeadLetterBytes, cfg.WorkersMaxBytes,
		cfg.AssetsMaxBytes)
}

// faultOfConnection finds what NATS tells elsewhere than in its answer, or by giving none.
func faultOfConnection(nc *nats.Conn, err error) error {
	if nc == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, nats.ErrTimeout) &&
		!errors.Is(err, nats.ErrNoResponders) &&
		!errors.Is(err, jetstream.ErrNoStreamResponse) && !errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return err
	}
	if last := resources.Denied(nc); last != nil {
		return &FaultError{fmt.Errorf("the user of this process may not do what the fleet must (%w): docs/guides/security.md has its permissions", last)}
	}
	if on, _ := nc.ConnectedServerJetStream(); !on && !errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, nats.ErrTimeout) {
		return &FaultError{fmt.Errorf("%s has no JetStream: PINWHEEL_NATS_URL must lead to a nats-server with a jetstream block (%w)", nc.ConnectedUrlRedacted(), err)}
	}
	return err
}
