package natstest

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// memory is a file system in memory on Linux.
const memory = "/dev/shm"

// roomy is how many bytes must be free in memory for stores to be there. nats-server promises streams no more than
// three quarters of it.
const roomy = 8 << 30

// StoreDir returns an empty folder for the store of a test's NATS server. It is in memory where there is room: a store
// there takes half of the CPU time, and a killed server loses no more than on a disk. It is removed with the test.
func StoreDir(t testing.TB) string {
	t.Helper()
	if !inMemory() {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, "pinwheel-test-")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func inMemory() bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(memory, &fs) == nil && fs.Bavail*uint64(fs.Bsize) >= roomy && syscall.Access(memory, 2) == nil
}
