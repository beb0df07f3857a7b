package crashnote

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// nameless makes an empty file in memory, which is gone when nobody has it open.
func nameless() (*os.File, error) {
	fd, err := unix.MemfdCreate("pinwheel-note", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), "note"), nil
}
