// Command dist makes from a commit what is released: for each architecture of Linux a binary in an archive, a Debian
// and an RPM package and a list of what is linked; one image of all architectures; and the checksums of all of that. It
// runs on Debian, and changes nothing there: go run -C deploy/dist . --help. The same commit gives the same bytes, with
// the same Go, g++ and packages of Debian (docs/development/adr/0070-releases.md).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
)

func main() {
	commit := flag.String("commit", "HEAD", "what to build: changes that are not committed are left out")
	out := flag.String("out", "dist", "directory for the files, from the root of the repository")
	archs := flag.String("arch", "amd64,arm64", "architectures")
	notes := flag.String("notes", "", "print what CHANGELOG.md says of this version, and make nothing")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	work := func() error { return run(ctx, *commit, *out, strings.Split(*archs, ",")) }
	if *notes != "" {
		work = func() error { return printNotes(ctx, *notes) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "dist: "+err.Error())
		os.Exit(1)
	}
}

// run makes all files of a release of commit in the directory out.
func run(ctx context.Context, commit, out string, archs []string) error {
	repo, err := output(ctx, ".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if !filepath.IsAbs(out) {
		out = filepath.Join(repo, out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "pinwheel-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	src, err := checkout(ctx, repo, commit, filepath.Join(work, "source"))
	if err != nil {
		return err
	}
	builds, err := src.compileAll(ctx, archs, work)
	if err != nil {
		return err
	}
	made, err := src.pack(ctx, builds, work, out)
	if err != nil {
		return err
	}
	if err := writeSums(out, made); err != nil {
		return err
	}
	fmt.Printf("%s of %s, in %s\n", builds[0].version(), src.commit, out)
	return nil
}

// compileAll compiles for each architecture. The build of the machine that this runs on is the first: it writes the
// manual pages. If archs does not have it, it is marked as not wanted.
func (s source) compileAll(ctx context.Context, archs []string, work string) ([]*build, error) {
	all := []string{runtime.GOARCH}
	for _, arch := range archs {
		if arch != runtime.GOARCH {
			all = append(all, arch)
		}
	}
	builds := make([]*build, len(all))
	err := atOnce(len(all), func(i int) error { // linkers take one processor each
		b, err := s.compile(ctx, all[i], filepath.Join(work, all[i]))
		if err != nil {
			return err
		}
		b.wanted = slices.Contains(archs, all[i])
		builds[i] = b
		return nil
	})
	return builds, err
}

// atOnce calls f with each number below n, all at once. It returns when all have ended.
func atOnce(n int, f func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// pack writes archives, packages, lists and the image. It returns the names of the files in out.
func (s source) pack(ctx context.Context, builds []*build, work, out string) (made []string, err error) {
	pages, err := s.pages(ctx, builds[0], filepath.Join(work, "man1"))
	if err != nil {
		return nil, err
	}
	wanted := slices.DeleteFunc(slices.Clone(builds), func(b *build) bool { return !b.wanted })
	if err := atOnce(len(wanted), func(i int) error { return s.packOne(ctx, wanted[i], pages, work, out) }); err != nil {
		return nil, err
	}
	for _, b := range wanted {
		for _, ext := range []string{".tar.gz", ".deb", ".rpm", ".cdx.json"} {
			made = append(made, "pinwheel-linux-"+b.arch+ext)
		}
	}
	files, err := s.writeImage(ctx, wanted, work, out)
	return append(made, files...), err
}

// packOne writes the files for one architecture, and notes its notices.
func (s source) packOne(ctx context.Context, b *build, pages []page, work, out string) (err error) {
	if b.notices, err = s.notices(ctx, b); err != nil {
		return err
	}
	stem := filepath.Join(out, "pinwheel-linux-"+b.arch)
	if err := s.writeArchive(stem+".tar.gz", b, pages); err != nil {
		return err
	}
	if err := s.writePackages(stem, b, pages, filepath.Join(work, "packages-"+b.arch)); err != nil {
		return err
	}
	return s.writeSBOM(stem+".cdx.json", b, nil)
}
