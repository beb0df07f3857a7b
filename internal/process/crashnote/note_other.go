//go:build !linux

package crashnote

import (
	"fmt"
	"os"
)

// nameless makes an empty file in the directory for temporary files, which is gone when nobody has it open. Only Linux
// has files in memory: here a thread that notes what it runs may have to wait for the disk.
func nameless() (*os.File, error) {
	f, err := os.CreateTemp("", "pinwheel-note-")
	if err != nil {
		return nil, fmt.Errorf("create the file of a note: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("create the file of a note: %w", err)
	}
	return f, nil
}
