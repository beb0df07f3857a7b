package fleettest

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/breach"
)

// BreachSignal has a child of a supervisor make its attempts, when its environment has targets for them.
const BreachSignal = syscall.SIGUSR1

// hearBreach has a child of a supervisor try what code would that has broken out of V8, when it gets BreachSignal. It
// writes the report to stderr.
func hearBreach() {
	targets, ok := breach.Asked()
	if !ok || os.Getenv(config.ChildVariable) == "" {
		return
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, BreachSignal)
	go func() {
		<-heard
		_ = targets.Try().Write(os.Stderr)
	}()
}
