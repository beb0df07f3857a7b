package fleet

import (
	"io"
	"os"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// IsCommand reports whether this process of the test binary runs the pinwheel command.
func IsCommand() bool {
	is := os.Getenv(asMain) != "" || os.Getenv(childVariable) != ""
	_ = os.Unsetenv(asMain)
	return is
}

// SetCommand sets the function that tests run as the pinwheel command.
func SetCommand(f func(cfg config.Config, args []string, stdin io.Reader, stdout, stderr io.Writer) int) {
	runCommand = f
}
