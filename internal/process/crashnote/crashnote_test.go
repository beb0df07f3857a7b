package crashnote

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const variable = "CRASHNOTE_TEST"

// TestMain is also the process that dies: with a nil pointer in the goroutine of acme/bad, or by SIGKILL.
func TestMain(m *testing.M) {
	dir := os.Getenv(variable)
	if dir == "" {
		os.Exit(m.Run())
	}
	if err := debug.SetCrashOutput(os.NewFile(4, "text"), debug.CrashOptions{}); err != nil {
		panic(err)
	}
	n, err := Open(os.NewFile(3, "note"))
	if err != nil {
		panic(err)
	}
	entered, die := make(chan struct{}), make(chan struct{})
	thread := func(list ...string) *Slot {
		runtime.LockOSThread()
		s := n.Slot()
		s.Bind()
		for _, w := range list {
			owner, name, _ := strings.Cut(w, "/")
			s.Enter(&workers.Worker{Owner: owner, Name: name, Version: "v 1"})
		}
		return s
	}
	go func() {
		thread("acme/ok", "acme/bad")
		entered <- struct{}{}
		<-die
		if os.Getenv(variable+"_KILL") != "" {
			p, _ := os.FindProcess(os.Getpid())
			_ = p.Kill()
		}
		if os.Getenv(variable+"_EXIT") != "" {
			os.Exit(1)
		}
		var nowhere *int
		*nowhere = 1
	}()
	go func() { thread("beta/good"); entered <- struct{}{}; select {} }()
	go func() { thread("gamma/gone").Leave(); entered <- struct{}{}; select {} }()
	for range 3 {
		<-entered
	}
	close(die)
	select {}
}

// died returns what is found of a process that died, for what the kernel says of its memory.
func died(t *testing.T, memory End, env ...string) (found []string, sure bool) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, variable+"="+dir)...)
	note, err := Create()
	require.NoError(t, err)
	defer note.Close()
	text, err := Nameless("text")
	require.NoError(t, err)
	defer text.Close()
	cmd.ExtraFiles = []*os.File{note, text}
	require.Error(t, cmd.Run())
	memory.Code, memory.Text = cmd.ProcessState.ExitCode(), CrashText(text)
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		memory.Signal = status.Signal()
	}
	c, err := Read(note, memory)
	require.NoError(t, err)
	for _, r := range c.Runs {
		found = append(found, r.Owner+"/"+r.Worker+" "+r.Version)
	}
	return found, c.Sure
}

// The text of the Go runtime says which thread ended the process. When the kernel killed it for memory, or does not say
// why, all are suspects that ran a worker. When somebody killed it, none is.
func TestNoteOutlivesItsProcess(t *testing.T) {
	found, sure := died(t, End{})
	require.Equal(t, []string{"acme/bad v 1"}, found)
	require.True(t, sure)
	for _, memory := range []End{{Killing: true}, {Blind: true}} {
		found, sure = died(t, memory, variable+"_KILL=1")
		require.ElementsMatch(t, []string{"acme/bad v 1", "beta/good v 1"}, found)
		require.False(t, sure)
	}
	found, _ = died(t, End{}, variable+"_KILL=1")
	require.Empty(t, found, "who kills a process from outside accuses nobody")
	found, _ = died(t, End{}, variable+"_EXIT=1")
	require.Empty(t, found, "a process that ends by itself accuses nobody")
}

// Each end has one cause. Nothing that runs in a process can end it so that it looks like an end from outside.
func TestCauses(t *testing.T) {
	fault := []byte("SIGSEGV: segmentation violation\nPC=0x1 m=3 sigcode=1\n\ngoroutine 7 [syscall]:\n")
	for _, c := range []struct {
		end  End
		want Cause
	}{
		{End{Signal: syscall.SIGKILL}, Outside},
		{End{Signal: syscall.SIGKILL, Killing: true}, Memory},
		{End{Signal: syscall.SIGKILL, Killing: true, Asked: true}, Memory},
		{End{Signal: syscall.SIGKILL, Blind: true}, Unknown},
		{End{Signal: syscall.SIGKILL, Blind: true, Asked: true}, Outside}, // it took too long to end
		{End{Signal: syscall.SIGKILL, Text: fault}, Fault},
		{End{Code: 2, Text: fault}, Fault},
		{End{Code: 2, Text: []byte("fatal error: runtime: cannot allocate memory\n")}, Fault},
		{End{Code: 2, Text: []byte("panic: SIGQUIT: ")}, Fault},
		{End{Code: 2, Text: []byte("SIGQUIT: quit\n")}, Outside},
		{End{Code: 2}, Fault},
		{End{Code: 2, Asked: true}, Fault},
		{End{Code: 134}, Fault},
		{End{}, Outside}, // it drained, whoever asked
		{End{Asked: true}, Outside},
		{End{Code: 1}, Outside},  // it reported an error
		{End{Code: -1}, Outside}, // it did not start
		{End{Signal: syscall.SIGTERM}, Outside},
		{End{Signal: syscall.SIGINT}, Outside},
		{End{Signal: syscall.SIGHUP}, Outside},
		{End{Signal: syscall.SIGSEGV}, Fault},
		{End{Signal: syscall.SIGSEGV, Asked: true}, Fault},
		{End{Signal: syscall.SIGBUS}, Fault},
		{End{Signal: syscall.SIGILL}, Fault},
		{End{Signal: syscall.SIGFPE}, Fault},
		{End{Signal: syscall.SIGTRAP}, Fault},
		{End{Signal: syscall.SIGABRT}, Fault},
		{End{Signal: syscall.SIGSYS}, Fault},
	} {
		require.Equal(t, c.want, c.end.Cause(), "%+v", c.end)
		require.Equal(t, c.want == Fault || c.want == Memory, c.want.Evidence())
	}
	for cause := Unknown; cause <= Memory; cause++ {
		text, err := json.Marshal(Ended{"I", cause})
		require.NoError(t, err)
		var back Ended
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, Ended{"I", cause}, back)
	}
	back := Ended{Cause: Fault}
	require.NoError(t, json.Unmarshal([]byte(`{"cause":"of a later version"}`), &back))
	require.Equal(t, Unknown, back.Cause)
}

// openNote opens a note of this process.
func openNote(t testing.TB) *Note {
	f, err := Create()
	require.NoError(t, err)
	defer f.Close()
	n, err := Open(f)
	require.NoError(t, err)
	return n
}

func TestSlotsAreBounded(t *testing.T) {
	n := openNote(t)
	var all []*Slot
	for range slots {
		s := n.Slot()
		require.NotNil(t, s)
		all = append(all, s)
	}
	none := n.Slot()
	require.Nil(t, none)
	none.Bind()
	none.Enter(&workers.Worker{})
	none.Leave()
	none.Free()
	require.Nil(t, (*Note)(nil).Slot())
	all[3].Free()
	require.NotNil(t, n.Slot())
	all[4].Enter(&workers.Worker{Owner: "acme", Name: "w", Version: strings.Repeat("v", 2*slotSize)})
	_, ok := runOf(all[4].mem)
	require.False(t, ok, "a name that is too long is not noted, nor is that of another worker")
}

func FuzzSlot(f *testing.F) {
	f.Add([]byte("\x01\x0a\x00" + "7 a b c d   "))
	f.Fuzz(func(t *testing.T, data []byte) {
		slot := make([]byte, slotSize)
		copy(slot, data)
		if r, ok := runOf(slot); ok {
			require.True(t, events.ValidName(r.Owner) && events.ValidName(r.Worker))
		}
	})
}

func of(a *Account, now time.Time) map[string]Suspect {
	all := map[string]Suspect{}
	for _, s := range a.Suspects(now) {
		all[s.Owner+"/"+s.Worker] = s
	}
	return all
}

// What a worker surely caused doubles its time, and that of its owner from the second time on, whatever its workers are
// called.
func TestTimesDouble(t *testing.T) {
	var a Account
	now := time.Now()
	for n, want := range []time.Duration{1, 2, 4, 8} {
		a.Add(Crash{Runs: []Run{{"bad", "w", "v", ""}}, Sure: true}, now)
		now = now.Add(time.Hour / 60 / 60)
		all := of(&a, now)
		require.Equal(t, want*time.Second, all["bad/w"].Left)
		require.Equal(t, want*time.Second/2*time.Duration(min(n, 1)), all["bad/"].Left)
		require.False(t, all["bad/w"].Try)
		now = now.Add(10 * time.Second)
		require.Empty(t, of(&a, now))
	}
	a.Add(Crash{Runs: []Run{{"bad", "another", "v", ""}}, Sure: true}, now)
	require.Equal(t, 8*time.Second, of(&a, now)["bad/"].Left)
	for range 20 {
		a.Add(Crash{Runs: []Run{{"bad", "w", "v", ""}}, Sure: true}, now)
	}
	require.Equal(t, Longest, of(&a, now)["bad/w"].Left)
	now = now.Add(Longest + remembered + time.Second)
	a.Add(Crash{Runs: []Run{{"bad", "w", "v", ""}}, Sure: true}, now)
	require.Equal(t, First, of(&a, now)["bad/w"].Left, "it is forgotten")
}

// Workers that only may have caused a crash are tried, not refused. If it happens again they are refused, not for long.
func TestDoubts(t *testing.T) {
	var a Account
	now := time.Now()
	both := Crash{Runs: []Run{{"bad", "w", "v", ""}, {"good", "w", "v", ""}, {"good", "w", "v", ""}}}
	for _, want := range []time.Duration{0, 1, 2, 4, 8, 16, 30, 30} {
		a.Add(both, now)
		all := of(&a, now)
		require.Equal(t, want*time.Second, all["good/w"].Left)
		require.True(t, all["good/w"].Try)
		require.NotContains(t, all, "good/")
		now = now.Add(40 * time.Second)
	}
	require.Empty(t, of(&a, now.Add(trials)))
}

func TestAccountIsBounded(t *testing.T) {
	var a Account
	now := time.Now()
	name := []byte("aaaaaa")
	for i := range 5000 {
		for k := range name {
			name[k] = 'a' + byte(i>>(3*k)&7)
		}
		a.Add(Crash{Runs: []Run{{string(name), "w", "v", ""}}, Sure: true}, now)
		now = now.Add(time.Millisecond)
	}
	require.LessOrEqual(t, len(a.of), most)
}

// BenchmarkTurn is what a note costs a stay in V8, for one worker and for two in turn.
func BenchmarkTurn(b *testing.B) {
	n := openNote(b)
	s := n.Slot()
	s.Bind()
	list := []*workers.Worker{{Owner: "acme", Name: "shop", Version: "20260101-000000-abcdef"},
		{Owner: "beta", Name: "shop", Version: "20260101-000000-abcdef"}}
	for _, k := range []int{1, 2} {
		b.Run([]string{"", "one", "two"}[k], func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				s.Enter(list[i%k])
				s.Leave()
			}
		})
	}
}
