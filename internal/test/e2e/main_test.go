package e2e

import (
	"os"
	"syscall"
	"testing"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"golang.org/x/sys/unix"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

func TestMain(m *testing.M) {
	beWithoutLandlock()
	parallel.RaiseCPU()
	fleettest.BeChild()
	parallel.AtOnce(parallel.Waits)
	os.Exit(m.Run())
}

// withoutLandlock has this binary become the program that its arguments name, on a kernel without Landlock, as it seems
// to that.
const withoutLandlock = "E2E_WITHOUT_LANDLOCK"

func beWithoutLandlock() {
	if os.Getenv(withoutLandlock) == "" {
		return
	}
	err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{DefaultAction: seccomp.ActionAllow, Syscalls: []seccomp.SyscallGroup{{
			Names: []string{"landlock_create_ruleset"}, Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS),
		}}}})
	if err == nil {
		_ = os.Unsetenv(withoutLandlock)
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	panic(err)
}
