package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

func TestInstallerIsThatOfTheLockFile(t *testing.T) {
	t.Parallel()
	for lock, want := range map[string]string{
		"package-lock.json":   "npm ci --ignore-scripts --no-audit --no-fund",
		"npm-shrinkwrap.json": "npm ci --ignore-scripts --no-audit --no-fund",
		"pnpm-lock.yaml":      "pnpm install --frozen-lockfile --ignore-scripts --ignore-pnpmfile",
		"yarn.lock":           "yarn install --frozen-lockfile --ignore-scripts --non-interactive",
		"bun.lock":            "bun install --frozen-lockfile --ignore-scripts",
		"bun.lockb":           "bun install --frozen-lockfile --ignore-scripts",
	} {
		i, err := findInstaller(project(t, map[string]string{lock: "# yarn lockfile v1\n"}))
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(i.command, " "))
	}
	i, err := findInstaller(project(t, map[string]string{"yarn.lock": "# comment\n\n__metadata:\n  version: 8\n"}))
	require.NoError(t, err)
	require.Equal(t, "yarn install --immutable --mode=skip-build", strings.Join(i.command, " "))
	require.Equal(t, []string{"YARN_IGNORE_PATH=1"}, i.env)

	_, err = findInstaller(project(t, map[string]string{"package.json": "{}"}))
	require.ErrorContains(t, err, "has no lock file: it is package-lock.json")
	require.Equal(t, exitUsage, exitCode(err))
	_, err = findInstaller(project(t, map[string]string{"package-lock.json": "{}", "yarn.lock": ""}))
	require.ErrorContains(t, err, "has lock files of two package managers, package-lock.json and yarn.lock: remove one")
	_, err = findInstaller(project(t, map[string]string{"package-lock.json": "{}", "npm-shrinkwrap.json": "{}"}))
	require.NoError(t, err)
	_, err = findInstaller(project(t, map[string]string{"package-lock.json/x": ""}))
	require.ErrorContains(t, err, "is no regular file")
}

// Buntime's autoInstall installs what a lock file says, where it can.
func TestManifestsInstallPackages(t *testing.T) {
	bin := project(t, map[string]string{"npm": "#!/bin/sh\n"})
	require.NoError(t, os.Chmod(filepath.Join(bin, "npm"), 0o700))
	t.Setenv("PATH", bin)
	const wants = "autoInstall: true\n"
	require.True(t, installsItself(project(t, map[string]string{"manifest.yaml": wants, "package-lock.json": "{}"})))
	for _, files := range []map[string]string{
		{"manifest.yaml": wants}, {"manifest.yaml": wants, "bun.lock": ""}, {"package-lock.json": "{}"},
		{"manifest.yaml": "autoInstall: false\n", "package-lock.json": "{}"},
		{"manifest.yaml": "autoInstall: [\n", "package-lock.json": "{}"},
	} {
		require.False(t, installsItself(project(t, files)), files)
	}
}

// A package manager gets what it needs, and nothing that is secret to the fleet.
func TestInstallGivesNoSecrets(t *testing.T) {
	dir := project(t, map[string]string{"package.json": "{}", "package-lock.json": "{}", "bin/npm": "#!/bin/sh\nenv\n"})
	require.NoError(t, os.Chmod(filepath.Join(dir, "bin/npm"), 0o700))
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	secret := []string{"PINWHEEL_NATS_URL", "PINWHEEL_SECRETS_KEY", "_PINWHEEL_X", "NATS_PASSWORD",
		"OTEL_EXPORTER_OTLP_HEADERS", "AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "NODE_OPTIONS", "LD_PRELOAD_"}
	for _, name := range secret {
		t.Setenv(name, "hunter2")
	}
	t.Setenv("npm_config_registry", "https://registry.test")
	t.Setenv("https_proxy", "http://proxy.test")
	var out bytes.Buffer
	require.NoError(t, installPackages(context.Background(), dir, &out), out.String())
	require.NotContains(t, out.String(), "hunter2")
	for _, kept := range []string{"PATH=" + dir, "npm_config_registry=https://registry.test", "https_proxy=http://proxy.test",
		"HOME="} {
		require.Contains(t, out.String(), kept)
	}
}

// It needs npm, but no registry: the package is a directory.
func TestInstallRunsNoScripts(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("there is no npm")
	}
	dir := project(t, map[string]string{
		"package.json":     `{"name": "p", "version": "1.0.0", "dependencies": {"dep": "file:dep"}, "scripts": {"postinstall": "touch ran-of-project"}}`,
		".npmrc":           "ignore-scripts=false\n",
		"dep/package.json": `{"name": "dep", "version": "1.0.0", "main": "index.js", "scripts": {"postinstall": "touch ../ran-of-package"}}`,
		"dep/index.js":     "export default 'installed';\n",
		"package-lock.json": `{"name": "p", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": {
			"": {"name": "p", "version": "1.0.0", "hasInstallScript": true, "dependencies": {"dep": "file:dep"}},
			"dep": {"version": "1.0.0", "hasInstallScript": true}, "node_modules/dep": {"resolved": "dep", "link": true}}}`,
	})
	var out bytes.Buffer
	require.NoError(t, installPackages(context.Background(), dir, &out), out.String())
	require.FileExists(t, filepath.Join(dir, "node_modules", "dep", "index.js"))
	require.NoFileExists(t, filepath.Join(dir, "ran-of-project"))
	require.NoFileExists(t, filepath.Join(dir, "ran-of-package"))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name": "p", "version": "1.0.0", "dependencies": {"other": "file:dep"}}`),
		0o600))
	require.ErrorContains(t, installPackages(context.Background(), dir, &out), "npm in "+dir,
		"the lock file is of other packages")
	require.ErrorContains(t, installPackages(context.Background(), filepath.Join(dir, "package.json"), &out),
		"--install is for a directory")
}
