package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/control"
	"github.com/pinwheel-run/pinwheel/internal/doctor"
)

// Commands of an owner. PINWHEEL_OWNER says that the user is an owner's: who somebody is stands in the environment,
// beside PINWHEEL_NATS_*, and flags say what to do. Such a user may not use JetStream, so commands ask the fleet at the
// owner's door. They print what the commands of the fleet's user print.

// atDoor reports whether commands use an owner's door.
func atDoor(e *env) bool { return e.cfg.Owner != "" }

// withDoor calls f with a client of the owner's door.
func withDoor(e *env, f func(*control.Client) error) error {
	nc, err := e.dial(e.cfg.Owner)
	if err != nil {
		return err
	}
	defer nc.Close()
	c := control.NewOwnerClient(nc, e.cfg.Prefix, e.cfg.Owner)
	c.Claim(claims())
	err = f(c)
	var refused *control.Error
	switch {
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no process of the fleet answers owner %s (PINWHEEL_OWNER): is one running, and may this user publish to %s.owner.%s.>?", e.cfg.Owner, e.cfg.Prefix, e.cfg.Owner)
	case errors.As(err, &refused) && refused.Code == http.StatusBadRequest:
		return usage("%w", err)
	}
	return err
}

// refuseOwner is the error of a command that needs the fleet's user, or nil.
func refuseOwner(e *env, command string) error {
	if !atDoor(e) {
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

func listWorkersAtDoor(ctx context.Context, e *env, owner string, asJSON bool) error {
	return withDoor(e, func(c *control.Client) error {
		list, err := workersAtDoor(ctx, c, owner)
		if err != nil {
			return err
		}
		if asJSON {
			return encodeEach(e, list)
		}
		all := make([]events.Installation, len(list))
		for i := range list {
			all[i] = describedInstallation(&list[i])
		}
		return e.printWorkers(all)
	})
}

func workersAtDoor(ctx context.Context, c *control.Client, owner string) (list []control.Worker, err error) {
	r := control.ListWorkers{Owner: owner}
	err = everyPage(0, func(limit int) (int, bool, error) {
		r.Limit = limit
		page, err := c.Workers(ctx, r)
		list, r.After = append(list, page.Workers...), page.Next
		return len(page.Workers), page.Next != "", err
	})
	return list, err
}

func showWorkerAtDoor(ctx context.Context, e *env, target string, asJSON bool) error {
	return withDoor(e, func(c *control.Client) error {
		versions, err := c.WorkerVersions(ctx, control.WorkerName{Worker: target})
		if err != nil {
			return err
		}
		list, err := workersAtDoor(ctx, c, "")
		if err != nil {
			return err
		}
		i := slices.IndexFunc(list, func(w control.Worker) bool { return w.Owner+"/"+w.Name == versions.Worker })
		if i < 0 {
			return fmt.Errorf("worker %s was removed just now", target)
		}
		list[i].Versions = versions.Versions
		if asJSON {
			return json.NewEncoder(e.out).Encode(list[i])
		}
		return e.printWorker(describedWorker(&list[i]), describedVersions(versions))
	})
}

func showVersionAtDoor(ctx context.Context, e *env, target, version string, code, asJSON bool) error {
	return withDoor(e, func(c *control.Client) error {
		w, err := versionAtDoor(ctx, c, target, version)
		if err != nil {
			return err
		}
		if code {
			_, err := fmt.Fprint(e.data(), w.Code)
			return err
		}
		versions, err := c.WorkerVersions(ctx, control.WorkerName{Worker: target})
		if err != nil {
			return err
		}
		if asJSON {
			return e.printWorkerJSON(w, describedVersions(versions))
		}
		return e.printWorker(w, describedVersions(versions))
	})
}

func diffAtDoor(ctx context.Context, e *env, target, from, to string) error {
	return withDoor(e, func(c *control.Client) error {
		a, err := versionAtDoor(ctx, c, target, from)
		if err != nil {
			return err
		}
		b, err := versionAtDoor(ctx, c, target, to)
		if err != nil {
			return err
		}
		return deployer{e}.printDiff(a, b)
	})
}

// versionAtDoor is a version with its code. Of its variables it has only the names.
func versionAtDoor(ctx context.Context, c *control.Client, target, version string) (*events.Worker, error) {
	d, code, err := control.CodeOf(ctx, c, target, version)
	if err != nil {
		return nil, err
	}
	w := describedWorker(d)
	w.Code, w.Tag, w.Message = code, d.Tag, d.Message
	return w, nil
}

// describedInstallation is a worker with its active version, if it has one, as it is described.
func describedInstallation(d *control.Worker) events.Installation {
	in := events.Installation{Owner: d.Owner, Name: d.Name}
	if d.Deployment != nil {
		in.Deployment = *d.Deployment
	}
	if d.Version != "" {
		in.Versions = []*events.Worker{describedWorker(d)}
	}
	return in
}

// describedVersions are the versions of a worker, as they are described.
func describedVersions(d control.WorkerVersions) events.Installation {
	in := events.Installation{Deployment: d.Deployment}
	in.Owner, in.Name, _ = events.ParseTarget(d.Worker)
	for _, v := range d.Versions {
		in.Versions = append(in.Versions, &events.Worker{Owner: in.Owner, Name: in.Name, Version: v.Version, DeployedAt: v.DeployedAt, Tag: v.Tag, Message: v.Message})
	}
	return in
}

// describedWorker is the worker of a description. It has no code, and of its variables only the names.
func describedWorker(d *control.Worker) *events.Worker {
	w := &events.Worker{Owner: d.Owner, Name: d.Name, Version: d.Version, Hash: d.Hash, Handlers: d.Handlers, Queue: d.Queue, File: d.File, Spec: d.Spec, DeployedAt: d.DeployedAt}
	w.Queues, w.VersionBinding, w.Vars = d.Queues, d.VersionBinding, map[string]string{}
	for _, name := range d.Vars {
		w.Vars[name] = ""
	}
	return w
}

func listSchedulesAtDoor(ctx context.Context, e *env, owner string, asJSON bool) error {
	return withDoor(e, func(c *control.Client) error {
		var rows []control.Schedule
		r := control.ListWorkers{Owner: owner}
		err := everyPage(0, func(limit int) (int, bool, error) {
			r.Limit = limit
			page, err := c.Schedules(ctx, r)
			rows, r.After = append(rows, page.Schedules...), page.Next
			return len(page.Schedules), page.Next != "", err
		})
		if err != nil {
			return err
		}
		if asJSON {
			return e.printSchedulesJSON(rows)
		}
		return e.printSchedules(rows)
	})
}

func listWaitingAtDoor(ctx context.Context, e *env, owner, worker string, asJSON bool) error {
	return withDoor(e, func(c *control.Client) error {
		return e.printWaiting(func(yield func(control.WaitingEvent, error) bool) {
			r := control.ListWaiting{Owner: owner, Worker: worker}
			stopped := false
			err := everyPage(0, func(limit int) (int, bool, error) {
				r.Limit = limit
				page, err := c.WaitingEvents(ctx, r)
				for _, w := range page.Events {
					if stopped = stopped || !yield(w, nil); stopped {
						return 0, false, nil
					}
				}
				r.After = page.Next
				return len(page.Events), page.Next != 0, err
			})
			if err != nil && !stopped {
				yield(control.WaitingEvent{}, err)
			}
		}, asJSON)
	})
}

func encodeEach[T any](e *env, list []T) error {
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	for _, one := range list {
		if err := enc.Encode(one); err != nil {
			return err
		}
	}
	return nil
}
