package confine

import (
	"os/exec"
	"runtime"
)

// Start starts cmd by an OS thread that does nothing else, after enter was called on it; nil = not called. What enter
// changes on the thread, the process inherits. The thread lives until ended is closed: the kernel takes its end for
// that of the parent of the process. Files that cmd has not opened are opened by the thread. The process inherits the
// files of cmd, and none that this process has inherited itself.
func Start(cmd *exec.Cmd, enter func() error, ended <-chan struct{}) error {
	result := make(chan error, 1)
	go onThread(func() {
		inheritNone()
		if enter != nil {
			if err := enter(); err != nil {
				result <- err
				return
			}
		}
		err := cmd.Start()
		result <- err
		if err == nil {
			<-ended
		}
	})
	return <-result
}

// Try calls enter on an OS thread that ends afterwards.
func Try(enter func() error) error {
	result := make(chan error, 1)
	go onThread(func() { result <- enter() })
	return <-result
}

// onThread calls f on an OS thread that ends afterwards: other goroutines never run with what f has changed on it.
//
// It is never the first thread of the process. That one does not end, and the kernel takes what it may for what the
// process may: a child with the same restrictions could then do to the process what it may do to itself.
func onThread(f func()) {
	runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
	if !isFirstThread() {
		f()
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); onThread(f) }()
	<-done // meanwhile the other goroutine cannot get this thread
	runtime.UnlockOSThread()
}
