package main

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/stretchr/testify/require"
)

var commitTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// checked returns the repository of this file as a source, without a clone.
func checked(t *testing.T) source {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return source{
		dir:    dir,
		commit: strings.Repeat("0123", 10),
		time:   commitTime,
	}
}

// small is a build whose program is a text: what is around it does not read it.
func small(t *testing.T) *build {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pinwheel")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho pinwheel\n"), 0o755))
	return &build{
		arch:    "amd64",
		path:    path,
		glibc:   "2.36",
		notices: []byte("notices\n"),
		info: &debug.BuildInfo{
			GoVersion: "go1.26.0",
			Main:      debug.Module{Path: "github.com/pinwheel-run/pinwheel", Version: "v1.2.3"},
		},
	}
}

func somePages() []page {
	return []page{
		{
			archive: "completions/_pinwheel",
			deb:     "/usr/share/zsh/vendor-completions/_pinwheel",
			rpm:     "/usr/share/zsh/site-functions/_pinwheel",
			text:    []byte("#compdef pinwheel\n"),
		},
		{
			archive: "man/man1/pinwheel.1",
			deb:     "/usr/share/man/man1/pinwheel.1.gz",
			rpm:     "/usr/share/man/man1/pinwheel.1.gz",
			text:    []byte(".TH PINWHEEL\n"),
		},
	}
}

func TestEqualEntriesAreEqualBytes(t *testing.T) {
	list := []entry{
		{path: "a/b/run", mode: 0o755, body: []byte("program")},
		{path: "a/link", target: "b/run"},
		{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777, owner: 7},
	}
	turned := slices.Clone(list)
	slices.Reverse(turned)
	var first, second bytes.Buffer
	require.NoError(t, writeTar(&first, list, commitTime))
	require.NoError(t, writeTar(&second, turned, commitTime))
	require.Equal(t, first.Bytes(), second.Bytes())

	var got []string
	for r := tar.NewReader(&first); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		require.True(t, h.ModTime.Equal(commitTime), "%s", h.ModTime)
		require.Empty(t, h.Uname)
		got = append(got, h.Name)
		if h.Name == "tmp/" {
			require.EqualValues(t, 0o1777, h.Mode)
			require.Equal(t, 7, h.Uid)
		}
	}
	require.Equal(t, []string{"a/", "a/b/", "a/b/run", "a/link", "tmp/"}, got)
	require.ErrorContains(t, writeTar(io.Discard, append(list, list[0]), commitTime), "a/b/run is there twice")
}

func TestArchiveAndSumsAreTheSameTwice(t *testing.T) {
	s, b := checked(t), small(t)
	var sums [2]string
	for i := range sums {
		dir := t.TempDir()
		require.NoError(t, s.writeArchive(filepath.Join(dir, "pinwheel-linux-amd64.tar.gz"), b, somePages()))
		require.NoError(t, s.writePackages(filepath.Join(dir, "pinwheel-linux-amd64"), b, somePages(), t.TempDir()))
		require.NoError(t, s.writeSBOM(filepath.Join(dir, "sbom.json"), b, nil))
		require.NoError(t, writeSums(dir, []string{
			"pinwheel-linux-amd64.tar.gz", "pinwheel-linux-amd64.deb", "pinwheel-linux-amd64.rpm", "sbom.json",
		}))
		text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
		require.NoError(t, err)
		sums[i] = string(text)
		out, err := command(t, dir, "sha256sum", "--strict", "-c", "SHA256SUMS")
		require.NoError(t, err, out)
		listed, err := command(t, dir, "tar", "-tzf", "pinwheel-linux-amd64.tar.gz")
		require.NoError(t, err)
		for _, name := range []string{
			"pinwheel", "LICENSE", "NOTICES", "README.md", "examples/hello.js", "completions/_pinwheel", "man/man1/pinwheel.1",
			"systemd/pinwheel.service",
		} {
			require.Contains(t, strings.Fields(listed), "pinwheel-linux-amd64/"+name)
		}
	}
	require.Equal(t, sums[0], sums[1])
}

func command(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestVersionsOfPackagesSort(t *testing.T) {
	in := []string{"v0.9.0", "v1.0.0-rc.1", "v1.0.0", "v1.0.1-0.20260102030405-0123456789ab", "v1.0.1"}
	want := []string{"0.9.0", "1.0.0~rc.1", "1.0.0", "1.0.1~0.20260102030405.0123456789ab", "1.0.1"}
	for i := range in {
		require.Equal(t, want[i], packageVersion(in[i]))
		if i > 0 {
			out, err := command(t, ".", "dpkg", "--compare-versions", want[i-1], "lt", want[i])
			require.NoError(t, err, out)
		}
	}
}

func TestDebianPackage(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "p")
	require.NoError(t, checked(t).writePackages(stem, small(t), somePages(), t.TempDir()))
	fields, err := command(t, ".", "dpkg-deb", "--field", stem+".deb")
	require.NoError(t, err, fields)
	for _, want := range []string{
		"Package: pinwheel\n", "Version: 1.2.3-1\n", "Architecture: amd64\n", "libc6 (>= 2.36)", "ca-certificates",
	} {
		require.Contains(t, fields, want)
	}
	listed, err := command(t, ".", "dpkg-deb", "--contents", stem+".deb")
	require.NoError(t, err, listed)
	for _, want := range []string{
		"-rwxr-xr-x root/root .* ./usr/bin/pinwheel\n", "-rw-r--r-- root/root .* ./usr/lib/systemd/system/pinwheel.service\n",
		"-rw------- root/root .* ./etc/pinwheel/environment\n", "./usr/share/doc/pinwheel/copyright\n",
		"./usr/share/zsh/vendor-completions/_pinwheel\n", "./usr/share/man/man1/pinwheel.1.gz\n",
		"2026-01-02 03:04 ./usr/share/doc/pinwheel/NOTICES\n",
	} {
		require.Regexp(t, want, listed)
	}
	require.NotContains(t, listed, "var/lib/pinwheel", "dpkg would remove an empty directory of the package")
	conf, err := command(t, ".", "dpkg-deb", "--info", stem+".deb", "conffiles")
	require.NoError(t, err, conf)
	require.Equal(t, "/etc/pinwheel/environment\n", conf)
	unit, err := command(t, ".", "sh", "-c",
		"dpkg-deb --fsys-tarfile "+stem+".deb | tar -xO ./usr/lib/systemd/system/pinwheel.service")
	require.NoError(t, err, unit)
	require.Contains(t, unit, "\nExecStart=/usr/bin/pinwheel serve\n")
}

func TestRPMPackage(t *testing.T) {
	stem := filepath.Join(t.TempDir(), "p")
	require.NoError(t, checked(t).writePackages(stem, small(t), somePages(), t.TempDir()))
	ask := func(args ...string) string {
		out, err := command(t, ".", "rpm", append([]string{"--query", "--package", stem + ".rpm"}, args...)...)
		require.NoError(t, err, out)
		return out
	}
	require.Equal(t, "pinwheel-1.2.3-1.x86_64", strings.TrimSpace(ask()))
	listed := ask("--list")
	for _, want := range []string{
		"/usr/bin/pinwheel", "/usr/lib/systemd/system/pinwheel.service", "/usr/share/zsh/site-functions/_pinwheel",
	} {
		require.Contains(t, strings.Fields(listed), want)
	}
	require.Equal(t, "/etc/pinwheel/environment", strings.TrimSpace(ask("--configfiles")))
	require.Contains(t, ask("--requires"), "glibc >= 2.36")
	require.Contains(t, ask("--scripts"), "useradd --system")
	require.Equal(t, "pinwheel", strings.TrimSpace(ask("--queryformat", "%{BUILDHOST}")))
}

// The image is the same twice, and what is written of it is whole.
func TestImage(t *testing.T) {
	s, b := checked(t), small(t)
	var debs []deb
	for name := range wantedFiles {
		file := "usr/lib/x86_64-linux-gnu/" + name + ".so.1"
		body := []byte(name)
		if name == "ca-certificates" {
			file = "usr/share/ca-certificates/mozilla/all.crt"
			body = bytes.Repeat([]byte("-----BEGIN CERTIFICATE-----\n"), 60)
		}
		debs = append(debs, deb{
			name:    name,
			version: "1.0+deb12u1",
			arch:    "amd64",
			control: []byte("Package: " + name + "\n"),
			files: []entry{
				{path: file, mode: 0o644, body: body},
				{path: "usr/share/doc/" + name + "/copyright", mode: 0o644},
			},
		})
	}
	var digests [2]v1.Hash
	for i := range digests {
		img, err := s.image(b, debs)
		require.NoError(t, err)
		digests[i], err = img.Digest()
		require.NoError(t, err)
		at, err := layout.Write(t.TempDir(), empty.Index)
		require.NoError(t, err)
		require.NoError(t, at.AppendImage(img))
		read, err := at.Image(digests[i])
		require.NoError(t, err)
		require.NoError(t, validate.Image(read))
		config, err := read.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, "10001:10001", config.Config.User)
		require.Equal(t, "v1.2.3", config.Config.Labels["org.opencontainers.image.version"])
	}
	require.Equal(t, digests[0], digests[1])

	list := filepath.Join(t.TempDir(), "sbom.json")
	require.NoError(t, s.writeSBOM(list, b, debs))
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Contains(t, string(text), "pkg:deb/debian/libc6@1.0%2Bdeb12u1?arch=amd64")
	_, err = root(slices.DeleteFunc(debs, func(d deb) bool { return d.name == "ca-certificates" }))
	require.ErrorContains(t, err, "roots of certificates")
}

func TestImageWantsLittleOfAPackage(t *testing.T) {
	for file, want := range map[string]bool{
		"lib/x86_64-linux-gnu/libc.so.6": true, "lib/x86_64-linux-gnu/gconv/UTF-7.so": false,
		"usr/lib/x86_64-linux-gnu/gconv/UTF-7.so": false, "lib64/ld-linux-x86-64.so.2": true,
		"usr/share/doc/libc6/copyright": true, "usr/share/doc/libc6/changelog.gz": false,
	} {
		require.Equal(t, want, wants("libc6", file), file)
	}
	require.True(t, wants("tzdata", "usr/share/zoneinfo/Europe/Berlin"))
	require.False(t, wants("base-files", "etc/profile"))
}

// The licences and the list name all that is linked, as `go version -m` says. This test itself is a program that is at
// hand: Pinwheel's own is compared in the slow test.
func TestNoticesAndListNameEveryModule(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	info, err := buildinfo.ReadFile(program)
	require.NoError(t, err)
	require.Greater(t, len(info.Deps), 10)
	info.Main.Version = "v1.2.3"
	found := map[string]map[string]string{}
	dirs, err := output(t.Context(), ".", nil, "go", "list", "-deps", "-test", "-f",
		`{{with .Module}}{{.Path}} {{.Dir}}{{end}} {{.Dir}}`, ".")
	require.NoError(t, err)
	for line := range strings.Lines(dirs) {
		if cells := strings.Fields(line); len(cells) == 3 {
			if found[cells[0]] == nil {
				found[cells[0]] = map[string]string{}
			}
			require.NoError(t, collect(found[cells[0]], cells[1], cells[2]))
		}
	}
	notices, err := writeNotices(info, map[string]string{"LICENSE": "licence of Go"}, found)
	require.NoError(t, err)
	b := &build{
		arch:    "amd64",
		path:    program,
		info:    info,
		notices: notices,
	}
	list := filepath.Join(t.TempDir(), "sbom.json")
	require.NoError(t, checked(t).writeSBOM(list, b, nil))
	requireNamed(t, program, notices, list)

	delete(found, info.Deps[0].Path)
	_, err = writeNotices(info, map[string]string{"LICENSE": "licence of Go"}, found)
	require.ErrorContains(t, err, info.Deps[0].Path+" "+info.Deps[0].Version+" has no licence")
}

// requireNamed compares the licences and the list of a program with what `go version -m` says of it.
func requireNamed(t *testing.T, program string, notices []byte, list string) {
	t.Helper()
	said, err := output(t.Context(), ".", nil, "go", "version", "-m", program)
	require.NoError(t, err)
	want := map[string]bool{}
	last := ""
	for line := range strings.Lines(said) {
		switch cells := strings.Fields(line); {
		case len(cells) >= 3 && cells[0] == "dep":
			last = cells[1] + "@" + cells[2]
			want[last] = true
		case len(cells) >= 3 && cells[0] == "=>": // it replaces the one before it
			delete(want, last)
			want[cells[1]+"@"+cells[2]] = true
		}
	}
	require.NotEmpty(t, want)
	f, err := os.Open(list)
	require.NoError(t, err)
	defer f.Close()
	var bom cdx.BOM
	require.NoError(t, cdx.NewBOMDecoder(f, cdx.BOMFileFormatJSON).Decode(&bom))
	got, names := map[string]bool{}, map[string]bool{}
	for _, c := range *bom.Components {
		names[c.Name] = true
		if strings.HasPrefix(c.PackageURL, "pkg:golang/") && c.Name != "std" {
			got[c.Name+"@"+c.Version] = true
			require.NotNil(t, c.Licenses, "no licence known of %s", c.Name)
		}
	}
	require.Equal(t, want, got)
	for _, n := range natives {
		require.True(t, names[n.name], n.name)
		require.Contains(t, string(notices), "\n"+strings.TrimSpace(n.name+" "+n.version)+"\n")
	}
	for module := range want {
		path, version, _ := strings.Cut(module, "@")
		require.NotEmpty(t, noticesOf(notices, path+" "+version), module)
	}
	var valid map[string]any
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &valid))
}

func TestLicenceTextsAreThere(t *testing.T) {
	used := map[string]bool{}
	for _, n := range natives {
		text, err := fs.ReadFile(licences, "licences/"+n.file)
		require.NoError(t, err)
		require.Greater(t, len(text), 500, n.file)
		used[n.file] = true
	}
	files, err := fs.ReadDir(licences, "licences")
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, used[f.Name()], "%s is of nothing that is linked", f.Name())
	}
	require.Equal(t, "Apache-2.0", licenceID(string(must(os.ReadFile("../../LICENSE")))))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestOnlyCommitsAreBuilt(t *testing.T) {
	_, err := checkout(context.Background(), "../..", "no-such-commit", filepath.Join(t.TempDir(), "source"))
	require.ErrorContains(t, err, "git rev-parse")
	_, err = checked(t).compile(t.Context(), "riscv64", t.TempDir())
	require.ErrorContains(t, err, `no architecture "riscv64"`)
}

func TestNotesOfAReleaseAreThoseOfTheChangelog(t *testing.T) {
	const changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [1.1.0] - 2026-02-01\n\n### Added\n\n- more\n\n" +
		"## [1.0.0] - 2026-01-01\n\n- first\n"
	for version, want := range map[string]string{
		"v1.1.0": "### Added\n\n- more", "v1.0.0": "- first", "v1.2.0-rc.1": "- new",
	} {
		text, err := releaseNotes(changelog, version)
		require.NoError(t, err)
		require.Equal(t, want, text)
	}
	_, err := releaseNotes(changelog, "v1.2.0")
	require.EqualError(t, err, "CHANGELOG.md has no section ## [1.2.0]")
	text, err := releaseNotes(string(must(os.ReadFile("../../CHANGELOG.md"))), "v9.9.9-rc.1")
	require.NoError(t, err)
	require.Contains(t, text, "### Added")
}
