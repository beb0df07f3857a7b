package compat_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

// needNPM is the variable that makes a missing npm or registry a failure instead of a skip. .ci/run sets it.
const needNPM = "COMPAT_NPM"

// home is the directory with a copy of testdata and the installed packages. TestMain creates and removes it.
var home string

// installed says why the packages could not be installed. The first test that needs them installs them.
var installed = sync.OnceValue(func() error { return npmCI(home) })

func TestMain(m *testing.M) {
	var err error
	if home, err = os.MkdirTemp("", "pinwheel-compat-"); err != nil {
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

func npmCI(dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return errors.New("npm is not installed: install Node.js, 20 or later")
	}
	if err := os.CopyFS(dir, os.DirFS("testdata")); err != nil {
		return err
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
	need := os.Getenv(needNPM)
	if need != "" && need != "required" && need != "optional" {
		t.Fatalf("%s is %q: it is required or optional", needNPM, need)
	}
	err := installed()
	if err == nil {
		return home
	}
	fmt.Fprintf(os.Stderr, "NOT TESTED: %s: the packages could not be installed: %v\n", t.Name(), err)
	if need == "required" {
		t.Fatalf("%s is %q and the packages could not be installed: %v", needNPM, need, err)
	}
	t.Skipf("NOT TESTED: the packages could not be installed: %v", err)
	return ""
}

// The lock files must not contain the registry where they were made: npm takes the packages from its configured
// registry.
func TestLockFilesNameNoRegistry(t *testing.T) {
	for _, name := range []string{"package-lock.json", "frameworks/package-lock.json"} {
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
