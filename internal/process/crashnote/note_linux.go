package crashnote

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Nameless makes an empty file in memory, which is gone when nobody has it open. name is for people.
func Nameless(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate("pinwheel-"+name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
