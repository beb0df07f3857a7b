package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/supervisor"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// childVariable tells a process that it is a supervisor's child: "NUMBER:SOCKET". It is nobody else's to set.
const childVariable = "_PINWHEEL_CHILD"

// embeddedVariable tells a supervisor's child that the NATS it finds at its URL is the supervisor's own.
const embeddedVariable = "_PINWHEEL_EMBEDDED"

// stopGrace is what a child has to end after its drain timeout: consumer and pool say goodbye meanwhile.
const stopGrace = 5 * time.Second

// childProcess is what a child of a supervisor knows of that.
type childProcess struct {
	process  int
	listener net.Listener // where the supervisor asks
	embedded bool         // NATS is the supervisor's own
}

// asChild is nil when this process is no child.
func asChild() (*childProcess, error) {
	value := os.Getenv(childVariable)
	if value == "" {
		return nil, nil
	}
	number, socket, _ := strings.Cut(value, ":")
	process, err := strconv.Atoi(number)
	if err != nil {
		return nil, fmt.Errorf("%s is %q: it is a number, a colon and a path", childVariable, value)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	return &childProcess{process, l, os.Getenv(embeddedVariable) != ""}, nil
}

// supervised is the fleet's processes on this machine, seen from above.
type supervised struct {
	*supervisor.Supervisor
	registry *prometheus.Registry
}

// supervise runs cfg.Processes processes of the fleet until ctx is done and all have drained. It uses no V8 itself. up
// is called once all of them take events.
func supervise(ctx context.Context, cfg Config, log zerolog.Logger, out io.Writer, up func(url, admin string)) error {
	url := cfg.NatsURL
	if cfg.embeds() {
		server, err := openEmbedded(cfg, log)
		if err != nil {
			return err
		}
		defer server.Close()
		url = server.URL()
		log.Info().Str("mode", cfg.Durability).Msg("durability: " + embeddedSync(cfg).Words(1))
	}
	s, err := openSupervised(cfg, url, log, out)
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := openAdmin(cfg, s)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() {
		if err := a.run(life); err != nil {
			log.Error().Err(err).Msg("admin port")
		}
	})
	running.Go(func() {
		if s.allReady(life) {
			up(cmp.Or(redacted(url), cfg.NatsContext), a.addr())
		}
	})
	defer context.AfterFunc(ctx, func() { log.Info().Stringer("timeout", cfg.DrainTimeout).Msg("draining all processes") })()
	s.Run(ctx)
	return nil
}

func openSupervised(cfg Config, url string, log zerolog.Logger, out io.Writer) (*supervised, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &supervised{registry: prometheus.NewRegistry()}
	own := prometheus.WrapRegistererWith(prometheus.Labels{"process": "supervisor"}, s.registry)
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	environ := childEnviron(cfg, url)
	c := supervisor.DefaultConfig(cfg.Processes)
	c.StopTimeout = cfg.DrainTimeout + stopGrace
	c.Log, c.Metrics = log, s.registry
	c.Output = childOutput(cfg, log, out)
	c.Command = func(process int, socket string) supervisor.Command {
		env := append(environ[:len(environ):len(environ)], fmt.Sprintf("%s=%d:%s", childVariable, process, socket))
		if cfg.embeds() {
			env = append(env, embeddedVariable+"=yes")
		}
		return supervisor.Command{Path: executable, Args: []string{"serve"}, Env: env}
	}
	if s.Supervisor, err = supervisor.Open(c); err != nil {
		return nil, err
	}
	return s, nil
}

// childEnviron is the environment of this process with the configuration of a child: NATS is at url.
func childEnviron(cfg Config, url string) []string {
	if cfg.NatsContext == "" {
		cfg.NatsURL = url
	}
	if cfg.Threads == 0 {
		cfg.Threads = min((runtime.GOMAXPROCS(0)+cfg.Processes-1)/cfg.Processes, 64)
	}
	cfg.Processes, cfg.AdminAddr, cfg.LogFormat = 0, "", "json"
	var environ []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, envPrefix+"_") {
			environ = append(environ, entry)
		}
	}
	return append(environ, cfg.environ()...)
}

// childOutput writes the messages of children as this process writes its own. What is no message, such as the last
// words of a process that crashes, becomes one. out takes writes from several goroutines, as files do.
func childOutput(cfg Config, log zerolog.Logger, out io.Writer) func(process int, line []byte) {
	w := logWriter(out, cfg)
	return func(process int, line []byte) {
		if line[0] == '{' && json.Valid(line) {
			_, _ = w.Write(append(line[:len(line):len(line)], '\n'))
			return
		}
		log.Error().Int("process", process).Msg(string(line))
	}
}

// allReady waits until all processes take events; false when ctx is done before.
func (s *supervised) allReady(ctx context.Context) bool {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for s.All(ctx, "/readyz") != nil {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

func (s *supervised) checkHealth(ctx context.Context) error { return s.Healthy(ctx) }

func (s *supervised) checkReady(ctx context.Context) error { return s.Ready(ctx) }

func (s *supervised) gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{s.registry, s.Supervisor}
}

// supervisedStats is what GET /admin/pool tells of several processes: their sum, and each.
type supervisedStats struct {
	ProcessStats
	Processes []childStats `json:"processes"`
}

type childStats struct {
	Process int    `json:"process"`
	PID     int    `json:"pid"`             // 0: it does not run
	Error   string `json:"error,omitempty"` // why there are no figures
	*ProcessStats
}

func (s *supervised) poolStats(ctx context.Context) any {
	sum := supervisedStats{ProcessStats: ProcessStats{Stats: isolates.Stats{
		Discards: map[string]uint64{}, Kills: map[string]uint64{}, Owners: []isolates.OwnerStats{}, Workers: []isolates.WorkerStats{},
	}}}
	pids := s.PIDs()
	for i, a := range s.Ask(ctx, "/admin/pool", "") {
		c := childStats{Process: i, PID: pids[i]}
		one := &ProcessStats{}
		err := a.Err
		if err == nil {
			err = json.Unmarshal(a.Body, one)
		}
		if err != nil {
			c.Error = err.Error()
		} else {
			c.ProcessStats = one
			sum.add(*one)
		}
		sum.Processes = append(sum.Processes, c)
	}
	return sum
}
