package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/doctor"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// explained adds to an error of a request what the user can do about it.
func (e *connection) explained(err error) error {
	var refused *control.Error
	silence := errors.Is(err, nats.ErrNoResponders)
	switch {
	case e.isOwner() && (silence || errors.Is(err, context.DeadlineExceeded)):
		return fmt.Errorf("no process of the fleet answers owner %s (PINWHEEL_OWNER): is one running, and may this user publish to %s.owner.%s.>?", e.cfg.Owner, e.cfg.Prefix, e.cfg.Owner)
	case silence:
		return fmt.Errorf("no process of the fleet answers: %w", err)
	case errors.As(err, &refused) && refused.Code == http.StatusBadRequest:
		return usage("%w", err)
	}
	return err
}

// hint adds to the error of something that is not found how to find it.
func hint(err error, text string) error {
	var refused *control.Error
	if errors.As(err, &refused) && refused.Code == http.StatusNotFound {
		return fmt.Errorf("%w; %s", err, text)
	}
	return err
}

// listsThem adds how to list the workers.
func listsThem(err error) error { return hint(err, "'pinwheel workers ls' lists them") }

// listsVersions adds how to list the versions or the aliases of a worker, when one of these is what is not found.
func listsVersions(err error, worker string) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), deploy.ErrNoVersion.Error()):
		return hint(err, "'pinwheel versions ls "+worker+"' lists them")
	case strings.Contains(err.Error(), "there is no alias"):
		return fmt.Errorf("%w; 'pinwheel alias ls %s' lists them", err, worker)
	}
	return listsThem(err)
}

// refuseOwner is the error of a command that needs the fleet's user, or nil.
func (e *connection) refuseOwner(command string) error {
	if !e.isOwner() {
		return nil
	}
	return usage("%s is for the fleet's user, and PINWHEEL_OWNER says that this is owner %s. %s", command, e.cfg.Owner, doctor.ForOwners)
}

// refuseUser is the error of a command that needs the fleet's user when the user of nc may not ask JetStream, or when
// its account has none. Users of owners, without PINWHEEL_OWNER, are like that.
func refuseUser(ctx context.Context, nc *nats.Conn, command string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if doctor.MayAsk(ctx, nc) != nil { // what NATS says about it is printed beside this
		return fmt.Errorf("%s is for the fleet's user, and this user may not ask JetStream. %s", command, doctor.ForOwners)
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	_, err = js.AccountInfo(ctx)
	if errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return fmt.Errorf("%s is for the fleet's user, and the account of this user at %s has no JetStream. %s. If it is the fleet's user, start nats-server with JetStream",
			command, nc.ConnectedUrlRedacted(), doctor.ForOwners)
	}
	return nil // what else is wrong, the command itself says
}

// ownOnly refuses another owner before anything is sent.
func (e *connection) ownOnly(owner, text string) error {
	if e.isOwner() && owner != e.cfg.Owner {
		return usage("%s is not of owner %s, as whom PINWHEEL_OWNER says you come", text, e.cfg.Owner)
	}
	return nil
}

// everyPage calls ask until it returns no next page. A limit of 0 is none. show returns how many of the page there are.
func everyPage(limit int, ask func(limit int) (n int, more bool, err error)) error {
	const page = 1000
	for left := limit; ; {
		most := page
		if limit > 0 {
			most = min(page, left)
		}
		n, more, err := ask(most)
		if left -= n; err != nil || !more || limit > 0 && left <= 0 {
			return err
		}
	}
}

// printPages prints a list that comes in pages. ask returns one of at most limit rows, and whether there are more.
func printPages[T any](l *terminal.List, cells func(T) []any, ask func(limit int) ([]T, bool, error)) error {
	err := everyPage(0, func(limit int) (int, bool, error) {
		page, more, err := ask(limit)
		for _, one := range page {
			err = cmp.Or(err, l.Add(one, cells(one)...))
		}
		return len(page), more, err
	})
	return errors.Join(err, l.End())
}

// localChecker checks a module in this program. Nobody else is delayed by it.
type localChecker struct {
	cfg    *config.Config // of this program
	remote *control.Remote
	log    func(events.LogLine)
}

// Check loads the module. It may reach what the fleet's workers may.
func (c *localChecker) Check(ctx context.Context, w *workers.Worker) (workers.Handlers, error) {
	addresses, hosts := config.SplitAddresses(c.remote.AllowedAddresses(ctx, c.cfg.AllowPrivateAddresses))
	checker, err := isolates.OpenChecker(checkHost{c.log}, isolates.CheckConfig{
		AllowAddresses: addresses, AllowHosts: hosts, Compilers: workers.Compilers(c.cfg.Compilers),
	})
	if err != nil {
		return workers.Handlers{}, err
	}
	defer checker.Close()
	return checker.Check(ctx, w)
}

// Close has nothing to report: a module that ends this program ends its own deploy.
func (*localChecker) Close() (lost bool) { return false }

// target checks OWNER/WORKER.
func target(text string) (control.WorkerName, error) {
	if _, _, err := events.ParseTarget(text); err != nil {
		return control.WorkerName{}, usage("%w", err)
	}
	return control.WorkerName{Worker: strings.TrimSpace(text)}, nil
}
