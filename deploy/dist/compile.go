package main

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/semver"
)

// triples are the names of GNU for the architectures of Go.
var triples = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// build is the program for an architecture.
type build struct {
	arch    string
	wanted  bool
	path    string
	info    *debug.BuildInfo // of the program itself: what is linked, and not what go.mod names
	glibc   string           // the version of glibc that it needs, as in "2.34"
	notices []byte
}

// version is that of the tag, or what Go makes of the commit: v1.2.3 or v0.0.0-20260102030405-0123456789ab.
func (b *build) version() string { return b.info.Main.Version }

// environment returns the variables for Go. None of the builder's that change a build stays.
func environment(arch string) []string {
	env := []string{
		"GOFLAGS=", "GOOS=linux", "GOARCH=" + arch, "CGO_ENABLED=1", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=",
		"CGO_CFLAGS=", "CGO_CXXFLAGS=", "CGO_CPPFLAGS=", "CGO_LDFLAGS=", "GOWORK=off",
	}
	cc, cxx := "gcc", "g++"
	if arch != runtime.GOARCH {
		cc, cxx = triples[arch]+"-gcc", triples[arch]+"-g++"
	}
	return append(env, "CC="+cc, "CXX="+cxx)
}

// compile builds the program for arch into the directory out.
func (s source) compile(ctx context.Context, arch, out string) (*build, error) {
	if triples[arch] == "" {
		return nil, fmt.Errorf("no architecture %q: there are amd64 and arm64", arch)
	}
	env := environment(arch)
	cxx := strings.TrimPrefix(env[len(env)-1], "CXX=")
	if _, err := exec.LookPath(cxx); err != nil {
		return nil, fmt.Errorf("%w: apt-get install g++-%s", err, strings.ReplaceAll(triples[arch], "_", "-"))
	}
	path := filepath.Join(out, "pinwheel")
	// V8 is C++. With its library and gcc's linked in, the program needs glibc alone.
	const flags = "-s -w -buildid= -linkmode external -extldflags '-static-libstdc++ -static-libgcc -Wl,--build-id=none'"
	if _, err := output(ctx, s.dir, env, "go", "build", "-trimpath", "-buildvcs=true", "-ldflags", flags, "-o", path,
		"."); err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if v := info.Main.Version; !semver.IsValid(v) || semver.Build(v) != "" {
		return nil, fmt.Errorf("the program's version is %q, which is not that of a commit", v)
	}
	glibc, err := neededGlibc(path)
	return &build{
		arch:  arch,
		path:  path,
		info:  info,
		glibc: glibc,
	}, err
}

// neededGlibc returns the highest version of the symbols that the program takes from glibc, and an error if it needs
// another library.
func neededGlibc(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	libs, err := f.ImportedLibraries()
	if err != nil {
		return "", err
	}
	for _, lib := range libs {
		switch name, _, _ := strings.Cut(lib, ".so"); name {
		case "libc", "libm", "libdl", "libpthread", "librt", "libresolv", "ld-linux-x86-64", "ld-linux-aarch64":
		default:
			return "", fmt.Errorf("the program needs %s, which is not of glibc", lib)
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return "", err
	}
	highest := ""
	for _, s := range symbols {
		if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && semver.Compare("v"+v, "v"+highest) > 0 {
			highest = v
		}
	}
	return highest, nil
}
