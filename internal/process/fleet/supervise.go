package fleet

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/http/certificates"
	"github.com/pinwheel-run/pinwheel/internal/process/admin"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/process/supervisor"
	"github.com/pinwheel-run/pinwheel/internal/process/telemetry"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// stopGrace is the time that a child has to end after its drain timeout. Meanwhile consumer and pool close.
const stopGrace = 5 * time.Second

// supervised is the set of the fleet's processes on this machine, as their supervisor sees them.
type supervised struct {
	*supervisor.Supervisor
	registry *prometheus.Registry
}

func sayDrains(log zerolog.Logger, timeout time.Duration) {
	log.Info().Stringer("timeout", timeout).Msg("draining all processes")
}

// whenReady is called with the address of NATS, and those of the admin port and of HTTP.
type whenReady func(url, admin, http string)

// Supervise runs cfg.Processes processes of the fleet until ctx is done and all have drained. It uses no V8 itself. It
// calls up when all of them take events.
func Supervise(ctx context.Context, cfg config.Config, log zerolog.Logger, out io.Writer, up whenReady) error {
	if err := checkForChildren(cfg); err != nil {
		return err
	}
	groups, noGroups := openCgroups(cfg) // what starts from here on is counted there
	url := cfg.NatsURL
	if cfg.Embeds() {
		server, err := openEmbedded(cfg, log)
		if err != nil {
			return err
		}
		defer server.Close()
		url = server.URL()
		log.Info().Str("mode", cfg.Durability).Msg("durability: " + embeddedSync(cfg).Words(1))
	}
	sockets, err := openSockets(cfg)
	if err != nil {
		return err
	}
	defer sockets.close()
	defer context.AfterFunc(ctx, sockets.close)() // children close theirs too: then no client can connect any more
	launch, err := openLauncher(cfg, url, log, sockets, groups, noGroups)
	if err != nil {
		return err
	}
	defer launch.checks.Wait()
	s, err := openSupervised(cfg, launch, log, out)
	if err != nil {
		return err
	}
	defer s.Close()
	a, err := admin.Open(cfg.AdminAddr, s, cfg.Profiling)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer end()
	running.Go(func() {
		if err := a.Run(life); err != nil {
			log.Error().Err(err).Msg("admin port")
		}
	})
	running.Go(func() {
		if s.allReady(life) {
			up(cmp.Or(config.Redacted(url), cfg.NatsContext), a.Addr(), sockets.addr())
		}
	})
	defer context.AfterFunc(ctx, func() { sayDrains(log, cfg.DrainTimeout) })()
	var final *supervisor.FinalError
	if errors.As(s.Run(ctx), &final) {
		return &inventory.FaultError{Err: errors.New(strings.TrimPrefix(final.Text, "pinwheel: "))}
	}
	return nil
}

// checkForChildren reads what the children read too. One that refuses it would be started again and again.
func checkForChildren(cfg config.Config) error {
	if _, err := loadIdentities(cfg, zerolog.Nop()); err != nil {
		return err
	}
	if err := cfg.CheckACMEKey(); err != nil {
		return err
	}
	if _, err := certificates.LoadRoots(cfg.HTTPAcmeCA); err != nil {
		return err
	}
	_, err := telemetry.Read(os.Getenv)
	return err
}

func openSupervised(cfg config.Config, launch *launcher, log zerolog.Logger, out io.Writer) (*supervised, error) {
	s := &supervised{registry: prometheus.NewRegistry()}
	own := prometheus.WrapRegistererWith(prometheus.Labels{"process": "supervisor"}, s.registry)
	own.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := RegisterConfined(launch.confined, launch.refused, s.registry); err != nil {
		return nil, err
	}
	c := supervisor.DefaultConfig(cfg.Processes)
	c.StopTimeout, c.FinalCode = cfg.DrainTimeout+stopGrace, inventory.ExitCode
	c.Log, c.Metrics = log, s.registry
	c.Output = childOutput(cfg, log, out)
	c.Ended, c.Command, c.Enter = launch.crashes.take, launch.command, launch.enter(launch.reads)
	var err error
	if s.Supervisor, err = supervisor.Open(c); err != nil {
		return nil, err
	}
	return s, nil
}

// forChild returns the environment of a child, and the variables that are not in it because they may hold secrets. NATS
// is at url.
func forChild(cfg config.Config, url string) (environ []string, secrets []byte) {
	if cfg.NatsContext == "" {
		cfg.NatsURL = url
	}
	if cfg.Threads == 0 {
		cfg.Threads = min((runtime.GOMAXPROCS(0)+cfg.Processes-1)/cfg.Processes, 64)
	}
	cfg.Processes, cfg.AdminAddr, cfg.LogFormat = 0, "", "json"
	cfg.ConsoleAddr, cfg.ConsoleToken = "", "" // the console is the supervisor's
	return cfg.ForChild()
}

// childOutput writes the messages of children in the format of this process. It makes a message from every other line,
// such as the last output of a process that crashes. Several goroutines may write to out at once, as with files.
func childOutput(cfg config.Config, log zerolog.Logger, out io.Writer) func(process int, line []byte) {
	w := config.LogWriter(out, cfg)
	return func(process int, line []byte) {
		if line[0] == '{' && json.Valid(line) {
			_, _ = w.Write(append(line[:len(line):len(line)], '\n'))
			return
		}
		log.Error().Int("process", process).Msg(string(line))
	}
}

// allReady waits until all processes take events. It returns false if ctx is done before.
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

func (s *supervised) CheckHealth(ctx context.Context) error { return s.Healthy(ctx) }

func (s *supervised) CheckReady(ctx context.Context) error { return s.Ready(ctx) }

func (s *supervised) Gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{s.registry, s.Supervisor}
}

// supervisedStats is what GET /admin/pool reports for several processes: the sum, and the figures of each.
type supervisedStats struct {
	ProcessStats
	Processes []childStats `json:"processes"`
}

type childStats struct {
	Process int    `json:"process"`
	PID     int    `json:"pid"`             // 0: it is not running
	Error   string `json:"error,omitempty"` // why there are no figures
	*ProcessStats
}

func (s *supervised) PoolStats(ctx context.Context) any {
	sum := supervisedStats{ProcessStats: ProcessStats{Stats: isolates.Stats{
		Discards: map[string]uint64{}, Kills: map[string]uint64{}, Owners: []isolates.OwnerStats{},
		Workers: []isolates.WorkerStats{},
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
