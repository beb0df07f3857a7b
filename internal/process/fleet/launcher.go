package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/pinwheel-run/pinwheel/internal/process/cgroup"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/process/spawn"
	"github.com/pinwheel-run/pinwheel/internal/process/supervisor"
)

// launcher makes the commands that start the children of a supervisor.
type launcher struct {
	executable string
	environ    []string
	secrets    []byte // variables that are not in environ
	embeds     bool
	sockets    *sharedSockets
	crashes    *crashes
	confined   bool
	starter    spawn.Starter  // of the processes that a child asks for
	noCgroups  string         // why cells have no cgroups; "" = they have
	cellsLack  []string       // parts of their confinement that the system refuses; nil = it is not known
	reads      []string       // what children read, for the configuration
	refused    confine.Report // what the system refuses, as far as it is known before a process starts
	checks     sync.WaitGroup // what starts processes for the children
}

// openLauncher makes a launcher. NATS is at url. Before, the supervisor has opened cgroups.
func openLauncher(cfg config.Config, url string, log zerolog.Logger, sockets *sharedSockets, groups *cgroup.Tree,
	noGroups string) (*launcher, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l := &launcher{executable: executable, embeds: cfg.Embeds(), sockets: sockets,
		crashes:  &crashes{log: log, lives: map[string]life{}},
		confined: cfg.Confine != config.ConfineOff, starter: starterOf(cfg, executable),
		reads: cfg.ChildReads()}
	l.starter.Cgroups, l.noCgroups = groups, noGroups
	l.environ, l.secrets = forChild(cfg, url)
	if err := l.examine(cfg, log); err != nil {
		return nil, err
	}
	l.cellsLack, err = probeForChildren(cfg, l, log)
	return l, err
}

// examine finds out what the system refuses. The error is of PINWHEEL_CONFINE=require.
func (l *launcher) examine(cfg config.Config, log zerolog.Logger) error {
	if !l.confined {
		log.Warn().Msg("processes are not confined (PINWHEEL_CONFINE=off)")
		return nil
	}
	if err := confine.Hide(); err != nil {
		l.refused = append(l.refused, confine.Refused{Part: confine.Files, Err: err})
	}
	_ = confine.Try(func() error {
		l.refused = append(l.refused, confine.Plan{Executable: l.executable, Read: l.reads}.Enter()...)
		return nil
	})
	if err := l.refused.Err(); err != nil {
		if cfg.Confine == config.ConfineRequire {
			return &inventory.FaultError{Err: fmt.Errorf("PINWHEEL_CONFINE is require: %w", err)}
		}
		log.Warn().Strs("refused", l.refused.Texts()).Msg("processes are confined in part: this system refuses the rest")
	}
	return nil
}

// enter confines the calling OS thread, for a process that reads these files beside those of the system. What the
// system refused before is left out: openLauncher has said so. The error is of a part that it gave then: no process
// starts without it.
func (l *launcher) enter(reads []string) func() error {
	if !l.confined {
		return nil
	}
	return func() error {
		got := confine.Plan{Executable: l.executable, Read: reads}.Enter()
		return slices.DeleteFunc(got, func(r confine.Refused) bool { return l.refused.Has(r.Part) }).Err()
	}
}

// inheritance collects what a child inherits.
type inheritance struct {
	environ []string
	files   []*os.File
	close   []io.Closer // when the process has started
}

// file gives the child a file, and says its descriptor in a variable.
func (l *inheritance) file(variable string, f *os.File, keep bool) {
	l.environ = append(l.environ, fmt.Sprintf("%s=%d", variable, firstDescriptor+len(l.files)))
	l.files = append(l.files, f)
	if !keep {
		l.close = append(l.close, f)
	}
}

// text gives the child a text, in a file that nobody else has.
func (l *inheritance) text(variable string, text []byte) error {
	f, err := crashnote.Nameless("text")
	if err != nil {
		return err
	}
	l.file(variable, f, false)
	_, err = f.WriteAt(text, 0)
	return err
}

// closeAll closes what only the child needs.
func (l *inheritance) closeAll() {
	for _, c := range l.close {
		_ = c.Close()
	}
}

// command is the command for a process that answers the supervisor at socket.
func (l *launcher) command(process int, socket string) supervisor.Command {
	to := &inheritance{environ: append(l.environ[:len(l.environ):len(l.environ)],
		fmt.Sprintf("%s=%d:%s", config.ChildVariable, process, socket))}
	if err := l.give(to, socket); err != nil {
		to.closeAll()
		return supervisor.Command{Err: err}
	}
	return supervisor.Command{Path: l.executable, Args: []string{"serve"}, Env: to.environ, Files: to.files,
		Started: to.closeAll}
}

// give adds all that a child inherits.
func (l *launcher) give(to *inheritance, socket string) error {
	if err := l.listeners(to, socket); err != nil {
		return err
	}
	if l.embeds {
		to.environ = append(to.environ, embeddedVariable+"=yes")
	}
	if len(l.refused) > 0 {
		to.environ = append(to.environ, refusedVariable+"="+strings.Join(l.refused.Texts(), "\n"))
	}
	if l.noCgroups != "" {
		to.environ = append(to.environ, noCgroupsVariable+"="+l.noCgroups)
	}
	if l.cellsLack != nil {
		to.environ = append(to.environ, cellsRefusedVariable+"="+strings.Join(l.cellsLack, "\n"))
	}
	life, knows := l.crashes.begin(socket)
	to.environ = append(to.environ, instanceVariable+"="+life.instance)
	if life.note != nil {
		to.file(noteVariable, life.note, true)
	}
	if life.text != nil {
		to.file(textVariable, life.text, true)
	}
	text, err := json.Marshal(knows)
	if err != nil {
		return err
	}
	if err := errors.Join(to.text(knownVariable, text), to.text(config.SecretsVariable, l.secrets)); err != nil {
		return err
	}
	ours, theirs, err := spawn.Pair()
	if err != nil {
		return err
	}
	to.file(spawnVariable, theirs, false)
	starter := l.starter
	starter.Enter = l.enter(nil)
	l.checks.Go(func() { starter.Serve(ours) }) // until the child has ended, or was not started
	return nil
}

// listeners adds the sockets where a child listens.
func (l *launcher) listeners(to *inheritance, socket string) error {
	files, err := l.sockets.forChild()
	if err != nil {
		return err
	}
	for _, f := range files {
		to.file(httpVariable, f, false)
	}
	admin, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: socket})
	if err != nil {
		return err
	}
	admin.SetUnlinkOnClose(false)
	to.close = append(to.close, admin)
	f, err := admin.File()
	if err != nil {
		return err
	}
	to.file(adminVariable, f, false)
	return nil
}

// RegisterConfined registers the metric that says which parts of the confinement hold.
func RegisterConfined(confined bool, refused confine.Report, to prometheus.Registerer) error {
	m := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "pinwheel_confined", Help: "1 if processes are confined in that part, 0 if the system refuses it or PINWHEEL_CONFINE is off. Not with PINWHEEL_PROCESSES=0.",
	}, []string{"part"})
	for _, part := range confine.Parts {
		m.WithLabelValues(part).Set(map[bool]float64{true: 1}[confined])
	}
	for _, r := range refused {
		m.WithLabelValues(r.Part).Set(0)
	}
	return to.Register(m)
}
