package compat_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

// needNPM is the variable that makes a missing npm or registry a failure instead of a skip. .ci/run sets it.
const needNPM = "COMPAT_NPM"

// home is a directory of cache with a copy of testdata and the installed packages. TestMain creates and removes it.
// cache is a directory of the user's: what is in it can be linked to.
var home, cache string

// installed says why the packages could not be installed. The first test that needs them installs them.
var installed = sync.OnceValue(func() error { return npmCI(home) })

func TestMain(m *testing.M) {
	var err error
	if home, err = makeHome(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	parallel.RaiseCPU()
	parallel.AtOnce(parallel.Isolates) // node takes much of their time
	code := m.Run()
	if err := os.RemoveAll(home); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func makeHome() (string, error) {
	users, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(users, "pinwheel-compat")
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(cache, "run-")
}

// npmCI copies testdata to dir, and links the packages there.
func npmCI(dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm is not installed: install Node.js, 20 or later")
	}
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		return err
	}
	kept, err := keptPackages(npm, "testdata")
	if err != nil {
		return err
	}
	return linkTree(filepath.Join(kept, "node_modules"), filepath.Join(dir, "node_modules"))
}

// linkTree makes a directory with links to the files of another: a deploy takes no file from outside of its project.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := to + path[len(from):]
		switch {
		case e.IsDir():
			return os.Mkdir(at, 0o700)
		case e.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(target, at)
		}
		return os.Link(path, at)
	})
}

// keptPackages returns a directory of the user's cache with the packages of a directory's lock file. npm writes 35 000
// files for the largest, which takes a fifth of the time of all tests here. So they stay for later runs: those of other
// lock files until nobody has used them for keptFor. Nobody writes to them.
func keptPackages(npm, of string) (string, error) {
	lock, err := os.ReadFile(filepath.Join(of, "package-lock.json"))
	if err != nil {
		return "", err
	}
	kept := filepath.Join(cache, fmt.Sprintf("%s-%s-%x", runtime.GOOS, runtime.GOARCH, sha256.Sum256(lock)))
	now := time.Now()
	if os.Chtimes(kept, now, now) == nil {
		return kept, nil
	}
	if err := removeUnused(cache, now.Add(-keptFor)); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	if err := install(npm, of, dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.Rename(dir, kept); err != nil { // another run was first
		if _, missing := os.Stat(kept); missing != nil {
			return "", errors.Join(err, missing)
		}
		return kept, os.RemoveAll(dir)
	}
	return kept, nil
}

// keptFor is longer than any run, and than most pauses between two.
const keptFor = 14 * 24 * time.Hour

// removeUnused removes the packages that nobody has used since then.
func removeUnused(cache string, since time.Time) error {
	list, err := os.ReadDir(cache)
	if err != nil {
		return err
	}
	for _, e := range list {
		if info, err := e.Info(); err == nil && info.ModTime().Before(since) {
			if err := os.RemoveAll(filepath.Join(cache, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// install lets npm write the packages of a lock file to dir.
func install(npm, of, dir string) error {
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(of, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w\n%s", err, out)
	}
	return nil
}

// packages returns the directory of the workers with node_modules. Without npm or its registry the test is skipped. It
// fails instead if COMPAT_NPM is "required".
func packages(t testing.TB) string {
	t.Helper()
	needed(t, installed())
	return home
}

// needed skips the test if what it needs could not be installed, or fails it if COMPAT_NPM is "required".
func needed(t testing.TB, err error) {
	t.Helper()
	need := os.Getenv(needNPM)
	if need != "" && need != "required" && need != "optional" {
		t.Fatalf("%s is %q: it is required or optional", needNPM, need)
	}
	if err == nil {
		return
	}
	fmt.Fprintf(os.Stderr, "NOT TESTED: %s: the packages could not be installed: %v\n", t.Name(), err)
	if need == "required" {
		t.Fatalf("%s is %q and the packages could not be installed: %v", needNPM, need, err)
	}
	t.Skipf("NOT TESTED: the packages could not be installed: %v", err)
}

// The lock files must not contain the registry where they were made: npm takes the packages from its configured
// registry.
func TestLockFilesNameNoRegistry(t *testing.T) {
	for _, name := range []string{"package-lock.json", "frameworks/package-lock.json", "wasm/package-lock.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, `"resolved"`) || strings.Contains(line, "file:") {
				t.Errorf("%s:%d: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}
