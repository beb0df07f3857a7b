package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/loadtest/machine"
	"github.com/pinwheel-run/pinwheel/loadtest/report"
	"github.com/spf13/cobra"
)

// contentions are the workloads of BenchmarkLocker in isolates/v8x, as curves over threads. There is one line for each
// way to enter an isolate. No fleet runs, because its threads never wait for V8's lock.
func contentions() []report.CurveText {
	about := func(work string) string {
		return work + ", by threads with an isolate each (pinned), with one for all whose lock each call waits for (locker), with one for all that a thread keeps until its event is over (held), " +
			"and with a new one for each event (fresh)"
	}
	return []report.CurveText{
		{Name: "contended-echo", Axis: "threads, JSON", About: about("1 KB of JSON parsed and written")},
		{Name: "contended-cpu", Axis: "threads, CPU", About: about("1 ms of computation")},
		{Name: "contended-io", Axis: "threads, waiting", About: about("two calls with 5 ms between them")},
	}
}

func newContentionCommand() *cobra.Command {
	o := defaultOptions()
	o.rounds, o.duration = 5, 500*time.Millisecond
	c := &cobra.Command{
		Use: "contention", Short: "Measure isolates pinned to threads beside isolates that threads share under V8's lock", Args: cobra.NoArgs,
		Long: "Runs BenchmarkLocker of isolates/v8x, round by round: five rounds take four minutes on a quiet machine of two cores.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			b, err := buildBenchmark(cmd.Context())
			if err != nil {
				return err
			}
			defer b.close()
			r, err := b.contend(cmd.Context(), o, "BenchmarkLocker")
			if err != nil {
				return err
			}
			if err := r.Print(cmd.OutOrStdout()); err != nil {
				return err
			}
			return r.Write(o.Files)
		},
	}
	f := c.Flags()
	f.IntVar(&o.rounds, "rounds", o.rounds, "rounds; every round runs all")
	f.DurationVar(&o.duration, "duration", o.duration, "length of each run")
	f.StringVar(&o.JSON, "json", "", "write everything measured to `FILE`")
	o.fileFlags(f)
	return c
}

// benchmark is the test binary of isolates/v8x.
type benchmark struct {
	dir     string // the binary is in it
	sources string
}

func buildBenchmark(ctx context.Context) (*benchmark, error) {
	root, err := machine.ModuleRoot(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "loadtest-")
	if err != nil {
		return nil, err
	}
	b := &benchmark{dir, filepath.Join(root, "isolates", "v8x")}
	// Nobody debugs this program. Without symbols, the linker takes a third less of CPU time.
	build := exec.CommandContext(ctx, "go", "test", "-c", "-ldflags=-s", "-o", b.binary(), ".")
	build.Dir = b.sources
	if out, err := build.CombinedOutput(); err != nil {
		b.close()
		return nil, fmt.Errorf("build the benchmark: %w\n%s", err, out)
	}
	return b, nil
}

func (b *benchmark) binary() string { return filepath.Join(b.dir, "v8x.test") }

func (b *benchmark) close() { _ = os.RemoveAll(b.dir) }

// contend runs the benchmarks that match bench, in rounds.
func (b *benchmark) contend(ctx context.Context, o *options, bench string) (*report.Report, error) {
	r, bar := report.New(ctx, nil, curveTexts()), newBar(os.Stderr)
	for round := range o.rounds {
		bar.begin(round, o.rounds, 0, 1, "contention")
		cmd := exec.CommandContext(ctx, b.binary(), "-test.run", "^$", "-test.bench", bench, "-test.benchtime",
			o.duration.String())
		cmd.Dir = b.sources
		others, out, err := beside(cmd)
		if err != nil {
			return nil, fmt.Errorf("the benchmark failed: %w\n%s", err, out)
		}
		if err := addBenchmark(r, out, others); err != nil {
			return nil, err
		}
		bar.end(fmt.Sprintf("%.2f cores used by others", others))
	}
	r.Ended = time.Now().UTC()
	return r, nil
}

// beside runs cmd and returns its output, and how many cores other processes used meanwhile.
func beside(cmd *exec.Cmd) (others float64, out []byte, err error) {
	start, busy, own := time.Now(), machine.Busy(), machine.UsedCPU([]int{os.Getpid()})
	out, err = cmd.CombinedOutput()
	if err != nil {
		return 0, out, err
	}
	used := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime() + machine.UsedCPU([]int{os.Getpid()}) - own
	return max(0, (machine.Busy()-busy-used).Seconds()/time.Since(start).Seconds()), out, nil
}

// addBenchmark adds a round to each case of r that has a line in out. All rounds must have the same cases.
func addBenchmark(r *report.Report, out []byte, others float64) error {
	line := regexp.MustCompile(`(?m)^BenchmarkLocker/work=(\w+)/threads=(\d+)/way=(\w+?)(?:-\d+)?\s+\d+\s+(.*)$`)
	found := line.FindAllSubmatch(out, -1)
	if len(found) == 0 || bytes.Contains(out, []byte("--- FAIL")) || len(r.Cases) > 0 && len(r.Cases) != len(found) {
		return fmt.Errorf("the benchmark did not say what it is to:\n%s", out)
	}
	for _, f := range found {
		threads, err := strconv.Atoi(string(f[2]))
		if err != nil {
			return err
		}
		c := report.Case{System: report.Ours, Scenario: "contention", Load: report.Saturation, Processes: 1,
			Curve: "contended-" + string(f[1]), At: threads, Line: string(f[3])}
		one := report.Round{Metrics: map[string]float64{"foreign cores": others}, Disturbed: others > report.ForeignLimit}
		pairs := strings.Fields(string(f[4]))
		for pair := range slices.Chunk(pairs[:len(pairs)/2*2], 2) {
			name := strings.Replace(pair[1], "cpu-", "cpu ", 1)
			if one.Metrics[name], err = strconv.ParseFloat(pair[0], 64); err != nil {
				return err
			}
		}
		i := slices.IndexFunc(r.Cases, func(known report.Result) bool { return known.Case == c })
		if i < 0 {
			i, r.Cases = len(r.Cases), append(r.Cases, report.Result{Case: c})
		}
		r.Cases[i].Rounds = append(r.Cases[i].Rounds, one)
	}
	return nil
}
