package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/machine"
)

// fleet is a running pinwheel with one or several processes.
type fleet struct {
	*machine.Child
	url   string // of its NATS
	admin string // host:port
	http  string // host:port; "" = it answers no HTTP requests
}

// fleetOptions are the settings of a fleet. They become environment variables.
type fleetOptions struct {
	binary    string
	natsURL   string // "": embedded
	dir       string // for its data
	processes int
	replicas  int
	env       []string             // NAME=VALUE; these override others
	tell      func(message string) // gets the message of each line of the log; may be nil
}

func (o fleetOptions) environ() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "PINWHEEL_") {
			env = append(env, e)
		}
	}
	env = append(env,
		"PINWHEEL_NATS_URL="+o.natsURL, "PINWHEEL_NATS_PORT=-1", "PINWHEEL_DATA="+o.dir, "PINWHEEL_ADMIN_ADDR=127.0.0.1:0",
		"PINWHEEL_LOG_FORMAT=json",
		"PINWHEEL_REPLICAS="+strconv.Itoa(max(1, o.replicas)), "PINWHEEL_DRAIN_TIMEOUT=1s",
		"PINWHEEL_ALLOW_PRIVATE_ADDRESSES=127.0.0.1") // the address of slowServer
	processes := o.processes
	if processes <= 1 {
		processes = 0 // no supervisor: the process is measured directly
	}
	env = append(env, "PINWHEEL_PROCESSES="+strconv.Itoa(processes))
	return append(env, o.env...)
}

// startFleet starts a fleet and returns when it takes events.
func startFleet(ctx context.Context, o fleetOptions) (*fleet, error) {
	type ready struct {
		Message, Nats, Admin, HTTP string
		Process                    *int // set by a supervisor's child, which is not the whole fleet
	}
	up := make(chan ready, 1)
	cmd := exec.Command(o.binary, "serve")
	cmd.Env = o.environ()
	c, err := machine.StartChild("pinwheel", cmd, func(line string) {
		var r ready
		if json.Unmarshal([]byte(line), &r) != nil {
			return
		}
		if o.tell != nil {
			o.tell(r.Message)
		}
		if r.Message == "ready" && r.Process == nil {
			select {
			case up <- r:
			default:
			}
		}
	})
	if err != nil {
		return nil, err
	}
	select {
	case r := <-up:
		return &fleet{c, r.Nats, r.Admin, r.HTTP}, nil
	case <-c.Done:
		return nil, c.Ended()
	case <-time.After(time.Minute):
		err = fmt.Errorf("pinwheel serve is not ready after a minute; it said last:\n%s", c.Said())
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.Stop(0)
	return nil, err
}

// metric returns the sum of a metric over all processes and labels.
func (f *fleet) metric(ctx context.Context, name string) (float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+f.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	sum := 0.0
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		line := lines.Text()
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
			if err != nil {
				return 0, fmt.Errorf("metric %s: %w", name, err)
			}
			sum += v
		}
	}
	return sum, nil
}

// warmth is how many events found a context of their worker, and how many contexts were created.
type warmth struct{ hits, made float64 }

func (f *fleet) warmth(ctx context.Context) (w warmth, err error) {
	if w.hits, err = f.metric(ctx, "pinwheel_context_warm_hits_total"); err != nil {
		return w, err
	}
	w.made, err = f.metric(ctx, "pinwheel_context_cold_starts_total")
	return w, err
}

// since returns the share of warm events since before, in percent.
func (w warmth) since(before warmth) float64 {
	hits, made := w.hits-before.hits, w.made-before.made
	return 100 * hits / max(1, hits+made)
}

// awaitWorkers waits until every process has installed n workers.
func (f *fleet) awaitWorkers(ctx context.Context, n, processes int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		have, err := f.metric(ctx, "pinwheel_worker_installs_total")
		if err == nil && have >= float64(n*processes) {
			return nil
		}
		if err := f.Ended(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes have taken up %.0f workers of %d each: %w", processes, have, n, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
