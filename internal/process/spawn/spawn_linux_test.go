package spawn

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/process/confine"
	"github.com/pinwheel-run/pinwheel/internal/process/crashnote"
)

const patience = time.Minute

func TestMain(m *testing.M) {
	if have, ok, err := AsCell(); ok {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		beCell(have)
		os.Exit(0)
	}
	if beMiddle() {
		os.Exit(0)
	}
	if os.Getenv(CheckVariable) != "" {
		_, _ = io.Copy(os.Stdout, os.Stdin) // a check that gives back what it gets
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beCell does what lines on the connection for events say, and answers each with a line.
func beCell(have *Inherited) {
	slot := have.Note.Slot()
	slot.Bind()
	lines := bufio.NewScanner(have.Events)
	for lines.Scan() {
		answer := "ok"
		what, argument, _ := strings.Cut(lines.Text(), " ")
		switch what {
		case "note":
			slot.Enter(&workers.Worker{Owner: "acme", Name: "w", Version: "1"})
		case "call":
			_, _ = fmt.Fprintln(have.Calls, "from a call")
		case "environment":
			answer = strings.Join(os.Environ(), " ")
		case "say":
			fmt.Print(strings.Repeat("x", 20_000) + "\nthe last words\n")
		case "flood":
			for {
				fmt.Print(strings.Repeat("x", 20_000))
			}
		case "breach":
			answer = breachAll(argument)
		case "threads":
			manyThreads()
		case "memory":
			answer = manyBytes()
		case "javascript":
			answer = runJavaScript(argument)
		case "fault":
			_ = unix.Kill(os.Getpid(), unix.SIGSEGV)
			select {}
		}
		_, _ = fmt.Fprintln(have.Events, answer)
	}
}

func ask(t *testing.T, p *Process, what string) string {
	t.Helper()
	_, err := fmt.Fprintln(p.Events, what)
	require.NoError(t, err)
	answer, err := bufio.NewReader(p.Events).ReadString('\n')
	if err != nil {
		p.Kill()
		require.NoError(t, err, "%+v", p.Wait())
	}
	return strings.TrimSpace(answer)
}

// spawners are one that starts processes itself, and one whose supervisor does.
func spawners(t *testing.T, s Starter) map[string]*Spawner {
	t.Helper()
	local := Local(s)
	ours, theirs, err := Pair()
	require.NoError(t, err)
	remote, err := OpenRemote(theirs)
	require.NoError(t, err)
	served := make(chan struct{})
	go func() { defer close(served); s.Serve(ours) }()
	t.Cleanup(func() {
		local.Close()
		remote.Close()
		<-served
	})
	return map[string]*Spawner{"local": local, "remote": remote}
}

func program(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return self
}

func begin(t *testing.T, s *Spawner) *Process {
	t.Helper()
	p, err := s.Cell(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Kill()
		p.Wait()
		_, _, _ = p.Events.Close(), p.Calls.Close(), p.Note.Close()
	})
	return p
}

// A cell has two connections, a note and nothing else, and ends when its broker wants it.
func TestCell(t *testing.T) {
	t.Parallel()
	for _, confined := range []bool{false, true} {
		for name, s := range spawners(t, Starter{Executable: program(t), ConfineCells: confined}) {
			t.Run(fmt.Sprintf("%s confined %t", name, confined), func(t *testing.T) {
				p := begin(t, s)
				require.Empty(t, p.Refused())
				require.Equal(t, CellVariable+"=3", ask(t, p, "environment"))
				require.Equal(t, "ok", ask(t, p, "note"))
				require.Equal(t, "ok", ask(t, p, "call"))
				said, err := bufio.NewReader(p.Calls).ReadString('\n')
				require.NoError(t, err)
				require.Equal(t, "from a call\n", said)
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", p.PID()))
				require.NoError(t, err)
				require.Equal(t, "1000\n", string(text))
				require.Equal(t, "ok", ask(t, p, "say"))
				p.Kill()
				e := p.Wait()
				require.Equal(t, unix.SIGKILL, e.Signal)
				require.Equal(t, "signal: killed", e.Why)
				require.Positive(t, e.CPU)
				require.Len(t, e.Text, mostFirst+len("\n...\n")+mostLast)
				require.True(t, strings.HasSuffix(e.Text, "x\nthe last words\n"))
				require.Equal(t, e, p.Wait())
				crash, err := crashnote.Read(p.Note, crashnote.End{Signal: unix.SIGSEGV})
				require.NoError(t, err)
				require.Len(t, crash.Runs, 1)
				require.Equal(t, "acme", crash.Runs[0].Owner)
			})
		}
	}
}

// A probe says what the system refuses of a cell, and leaves none.
func TestProbe(t *testing.T) {
	t.Parallel()
	for name, s := range spawners(t, Starter{Executable: program(t), ConfineCells: true}) {
		refused, err := s.Probe(t.Context())
		require.NoError(t, err, name)
		require.Empty(t, refused, name)
	}
	for name, s := range spawners(t, Starter{Executable: "/nonexistent", ConfineCells: true}) {
		_, err := s.Probe(t.Context())
		require.ErrorContains(t, err, "no such file or directory", name)
	}
}

// write writes a program. Who is forked meanwhile would have the file open for writing, and it could not be executed.
func write(t *testing.T, path, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
}

// How a cell ends, and why.
func TestEndsOfCells(t *testing.T) {
	t.Parallel()
	for name, s := range spawners(t, Starter{Executable: program(t), ConfineCells: true}) {
		t.Run(name, func(t *testing.T) {
			p := begin(t, s)
			_, err := fmt.Fprintln(p.Events, "fault")
			require.NoError(t, err)
			e := p.Wait()
			require.Contains(t, e.Text, "SIGSEGV", "%+v", e)
			require.Error(t, e.Err())

			p = begin(t, s)
			_, err = fmt.Fprintln(p.Events, "flood")
			require.NoError(t, err)
			require.Equal(t, unix.SIGKILL, p.Wait().Signal)

			p = begin(t, s)
			require.NoError(t, p.Events.CloseWrite())
			require.NoError(t, p.Wait().Err(), "it ends by itself")

			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = s.Cell(ctx)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	// A program that is no cell: one that ends, one that writes, and one that does nothing.
	script := filepath.Join(t.TempDir(), "script")
	for text, why := range map[string]string{
		"exit 3": "exit status 3", "exec yes": "signal: killed", "exec sleep 1000": "",
	} {
		write(t, script, "#!/bin/sh\necho here\n"+text+"\n")
		for _, s := range spawners(t, Starter{Executable: script}) {
			ctx, cancel := context.WithCancel(t.Context())
			if why == "" {
				cancel()
			}
			_, err := s.Cell(ctx)
			cancel()
			if why == "" {
				require.ErrorIs(t, err, context.Canceled)
			} else {
				require.ErrorContains(t, err, why)
			}
		}
	}
	for _, s := range spawners(t, Starter{Executable: "/nonexistent", ConfineCells: true}) {
		for range 2 {
			_, err := s.Cell(t.Context())
			require.ErrorContains(t, err, "no such file or directory")
		}
	}
}

// There are only so many processes at once, and a place is free again when one has ended.
func TestPlaces(t *testing.T) {
	t.Parallel()
	self := program(t)
	for _, k := range []kind{'x', 0} {
		_, err := spawners(t, Starter{Executable: self})["remote"].ask(k)
		require.ErrorContains(t, err, "has started no process")
	}
	s := spawners(t, Starter{Executable: self,
		Enter: func() error { return confine.Plan{Executable: self}.Enter().Err() }})["remote"]
	var all []*Check
	for range mostAtOnce[check] {
		c, err := s.Check()
		require.NoError(t, err)
		all = append(all, c)
	}
	_, err := s.Check()
	require.ErrorContains(t, err, "has started no process: too many processes of that kind are there")
	all[0].Kill()
	require.NotEmpty(t, all[0].Wait().Why)
	_ = all[0].In.Close()
	require.Eventually(t, func() bool {
		c, err := s.Check()
		if err == nil {
			all[0] = c
		}
		return err == nil
	}, patience, time.Millisecond)
	for _, c := range all {
		_, err := c.In.WriteString("text")
		require.NoError(t, err)
		require.NoError(t, c.In.Close())
		text, err := io.ReadAll(c.Out)
		require.NoError(t, err)
		require.Equal(t, "text", string(text))
		require.NoError(t, c.Wait().Err())
	}
}

// A program that does not call what makes it a cell would start itself for each, and again in each of these.
func TestProcessesStartNone(t *testing.T) {
	for _, variable := range []string{CheckVariable, CellVariable} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "3")
			s := Local(Starter{Executable: "/proc/self/exe"})
			defer s.Close()
			_, err := s.Check()
			require.ErrorIs(t, err, errNoChild)
			_, err = s.Cell(t.Context())
			require.ErrorIs(t, err, errNoChild)
		})
	}
}
