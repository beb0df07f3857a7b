package crashnote

import (
	"bytes"
	"slices"
	"syscall"
)

// Cause is why a process ended, as far as it says something about what ran in it.
type Cause uint8

// The causes. Only Fault and Memory are evidence against what ran.
const (
	// Unknown: nobody saw the end, as when a machine vanishes, or the kernel does not say why it killed the process.
	Unknown Cause = iota
	// Outside: the process ended by itself, was asked to end, or somebody killed it.
	Outside
	// Fault: it did something that no process may do, as a fault of V8 or Go does.
	Fault
	// Memory: the kernel killed it because memory ran out.
	Memory
)

var causes = [...]string{Unknown: "unknown", Outside: "outside", Fault: "fault", Memory: "memory"}

// String is the word for the cause in logs and records.
func (c Cause) String() string { return causes[c] }

// MarshalText is String.
func (c Cause) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the word. One that a later version may write is Unknown.
func (c *Cause) UnmarshalText(text []byte) error {
	*c = Cause(max(0, slices.Index(causes[:], string(text))))
	return nil
}

// Evidence reports whether it is evidence against what ran.
func (c Cause) Evidence() bool { return c == Fault || c == Memory }

// Ended tells how a process ended. A process of a supervisor has an instance, which no other one has.
type Ended struct {
	Instance string `json:"instance"`
	Cause    Cause  `json:"cause"`
}

// End is what a supervisor saw of the end of a process.
type End struct {
	Asked  bool           // it was asked to end
	Signal syscall.Signal // that ended it; 0 = none
	Code   int            // its exit status; -1 = a signal ended it, or it did not start
	// Killing says whether the kernel killed processes because memory ran out, at about that time.
	Killing bool
	// Blind: the kernel does not say whether it did.
	Blind bool
	// Text is what the Go runtime wrote when the process died.
	Text []byte
}

// lastByItself is the highest exit status of a process that ended by itself: 0, or 1 after an error that it reported.
// The Go runtime ends a process that it cannot save with 2.
const lastByItself = 1

// asking are the signals by which people and machines ask a process to end, or what it does.
var asking = []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT}

// Cause returns why the process ended. What runs in a process can cause no end that is taken for Outside, except with
// the help of a program that kills processes for their memory before the kernel does.
func (e End) Cause() Cause {
	quit := bytes.HasPrefix(e.Text, []byte("SIGQUIT: ")) // who sends it asks where each goroutine is
	switch {
	case len(e.Text) > 0 && !quit:
		return Fault
	case e.Signal == syscall.SIGKILL && e.Killing:
		return Memory
	case e.Signal == syscall.SIGKILL && e.Blind && !e.Asked:
		return Unknown
	case e.Signal == syscall.SIGKILL, quit, slices.Contains(asking, e.Signal), e.Signal == 0 && e.Code <= lastByItself:
		return Outside
	}
	return Fault
}
