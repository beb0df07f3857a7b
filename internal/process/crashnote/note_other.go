//go:build !linux

package crashnote

import (
	"fmt"
	"os"
)

// Nameless makes an empty file in the directory for temporary files, which is gone when nobody has it open. Only Linux
// has files in memory: here a thread that notes what it runs may have to wait for the disk.
func Nameless(name string) (*os.File, error) {
	f, err := os.CreateTemp("", "pinwheel-"+name+"-")
	if err != nil {
		return nil, fmt.Errorf("create a file: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("create a file: %w", err)
	}
	return f, nil
}
