package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ModuleRoot is the directory of the module that this program was started in.
func ModuleRoot(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	path := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	if path == "" || path == os.DevNull {
		return "", errors.New("this is not a directory of the module: run it in one, or name the binary with --pinwheel")
	}
	return filepath.Dir(path), nil
}
