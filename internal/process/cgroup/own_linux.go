package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// own returns the directory of the cgroup of this process, if it is delegated.
func own() (dir string, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(mounted, &fs); err != nil || fs.Type != unix.CGROUP2_SUPER_MAGIC {
		return "", fmt.Errorf("%s has no cgroups of version 2", mounted)
	}
	text, err := os.ReadFile(ofSelf)
	if err != nil {
		return "", err
	}
	path, err := pathOf(string(text))
	if err != nil {
		return "", err
	}
	dir = filepath.Join(mounted, path)
	if err := unix.Access(filepath.Join(dir, "cgroup.subtree_control"), unix.W_OK); err != nil {
		return "", fmt.Errorf("the cgroup %s is not delegated to this process: %w", dir, err)
	}
	if os.Geteuid() == 0 && path != "/" && !marked(dir) {
		return "", fmt.Errorf("the cgroup %s is not delegated to this process: its unit has no Delegate=", dir)
	}
	return dir, nil
}

// pathOf returns the path in what /proc/self/cgroup says.
func pathOf(text string) (string, error) {
	for line := range strings.Lines(text) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && !strings.HasPrefix(path, "/..") {
			return path, nil
		}
	}
	return "", errors.New("this process is in no cgroup of version 2 that it sees")
}

// marked reports whether systemd has marked a cgroup as delegated. Root can write to all, also to those that systemd
// goes on to change. In a container, the first cgroup that a process sees is its own.
func marked(dir string) bool {
	for _, name := range []string{"user.delegate", "trusted.delegate"} {
		value := make([]byte, 8)
		if n, err := unix.Getxattr(dir, name, value); err == nil && string(value[:n]) == "1" {
			return true
		}
	}
	return false
}
