package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// installTimeout limits the time of a package manager.
const installTimeout = 10 * time.Minute

// installer is a package manager, and how it installs what a lock file has: nothing else, and without running scripts.
type installer struct {
	lock    string // file in the directory
	command []string
	env     []string
}

// installers are looked for in this order. Some lock files are of two versions of a manager: see find.
var installers = []installer{
	{lock: "package-lock.json", command: []string{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}},
	{lock: "npm-shrinkwrap.json", command: []string{"npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"}},
	// A .pnpmfile.cjs and the yarn that a project brings are code of its author.
	{lock: "pnpm-lock.yaml", command: []string{"pnpm", "install", "--frozen-lockfile", "--ignore-scripts",
		"--ignore-pnpmfile"}},
	{lock: "yarn.lock", command: []string{"yarn", "install", "--frozen-lockfile", "--ignore-scripts", "--non-interactive"},
		env: []string{"YARN_IGNORE_PATH=1"}},
	{lock: "bun.lock", command: []string{"bun", "install", "--frozen-lockfile", "--ignore-scripts"}},
	{lock: "bun.lockb", command: []string{"bun", "install", "--frozen-lockfile", "--ignore-scripts"}},
}

// The variables that a package manager gets, and no others: a project's configuration can name any of them, and send it
// to a registry of its choice. The prefixes are of variables that are made for package managers.
var (
	installVariables = []string{
		"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "NO_COLOR", "CI", "TMPDIR", "TMP",
		"TEMP",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"NODE_USE_SYSTEM_CA",
		"PNPM_HOME", "NVM_DIR", "NVM_BIN", "VOLTA_HOME", "FNM_DIR", "ASDF_DIR", "ASDF_DATA_DIR",
	}
	installPrefixes = []string{"LC_", "XDG_", "NPM_CONFIG_", "YARN_", "BUN_", "COREPACK_"}
)

// installEnviron returns the entries of an environment that a package manager gets.
func installEnviron(environ []string) (kept []string) {
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		name = strings.ToUpper(name) // npm_config_registry, http_proxy
		if slices.Contains(installVariables, name) ||
			slices.ContainsFunc(installPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			kept = append(kept, entry)
		}
	}
	return kept
}

// findInstaller finds the lock file of a directory.
func findInstaller(dir string) (installer, error) {
	var found installer
	for _, i := range installers {
		path := filepath.Join(dir, i.lock)
		info, err := os.Stat(path)
		switch {
		case err != nil:
			continue
		case !info.Mode().IsRegular():
			return found, usage("%s is no regular file", path)
		case found.lock != "" && found.command[0] != i.command[0]:
			return found, usage("%s has lock files of two package managers, %s and %s: remove one", dir, found.lock, i.lock)
		case found.lock == "":
			found = i
		}
	}
	if found.lock == "" {
		return found, usage("--install: %s has no lock file: it is package-lock.json, npm-shrinkwrap.json, pnpm-lock.yaml, yarn.lock or bun.lock", dir)
	}
	if found.lock == "yarn.lock" {
		text, err := os.ReadFile(filepath.Join(dir, found.lock))
		if err != nil {
			return found, err
		}
		if bytes.Contains(text, []byte("\n__metadata:")) { // of Yarn 2 and later
			found.command = []string{"yarn", "install", "--immutable", "--mode=skip-build"}
		}
	}
	return found, nil
}

// installAll installs the packages of the directories that are asked for, or that want it themselves.
func (e deployer) installAll(ctx context.Context, asked bool, roots, paths []string) error {
	if asked && len(roots) > 0 {
		return usage("--install does not go with --root: a package manager reads more of this machine than these directories")
	}
	for _, path := range paths {
		if !asked && (len(roots) > 0 || !installsItself(path)) {
			continue
		}
		if err := installPackages(ctx, path, e.Err); err != nil {
			return err
		}
	}
	return nil
}

// installsItself reports whether the manifest of a directory wants its packages installed, and they can be: there is a
// lock file, and its package manager.
func installsItself(dir string) bool {
	i, err := findInstaller(dir)
	if err != nil || !bundle.InstallsPackages(dir) {
		return false
	}
	_, err = exec.LookPath(i.command[0])
	return err == nil
}

// installPackages installs the packages of the directory. What the package manager prints goes to out.
func installPackages(ctx context.Context, dir string, out io.Writer) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return usage("--install is for a directory: %s is a file", dir)
	}
	i, err := findInstaller(dir)
	if err != nil {
		return err
	}
	if _, err := exec.LookPath(i.command[0]); err != nil {
		return fmt.Errorf("--install: %s has %s, and there is no program %s here", dir, i.lock, i.command[0])
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, i.command[0], i.command[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, append(installEnviron(os.Environ()), i.env...), time.Second
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("--install: %s in %s: %w", i.command[0], dir, err)
	}
	return nil
}
