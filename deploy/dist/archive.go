package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// entry is a file of an archive: a directory if its mode says so, a link if it has a target.
type entry struct {
	path   string // without a slash at its beginning
	mode   fs.FileMode
	body   []byte
	target string
	owner  int // user and group
}

// writeTar writes entries and the directories above them, sorted, and all with the same time. So equal entries are
// equal bytes, whichever order they came in.
func writeTar(w io.Writer, entries []entry, at time.Time) error {
	known := map[string]bool{}
	all := slices.Clone(entries)
	for _, e := range entries {
		if known[e.path] {
			return fmt.Errorf("%s is there twice", e.path)
		}
		known[e.path] = true
	}
	for _, e := range entries {
		for dir := path.Dir(e.path); dir != "." && !known[dir]; dir = path.Dir(dir) {
			known[dir] = true
			all = append(all, entry{path: dir, mode: fs.ModeDir | 0o755})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	t := tar.NewWriter(w)
	for _, e := range all {
		if err := t.WriteHeader(e.header(at)); err != nil {
			return err
		}
		if _, err := t.Write(e.body); err != nil {
			return err
		}
	}
	return t.Close()
}

func (e entry) header(at time.Time) *tar.Header {
	h := &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     e.path,
		Mode:     int64(e.mode.Perm()),
		Size:     int64(len(e.body)),
		ModTime:  at,
		Uid:      e.owner,
		Gid:      e.owner,
		Format:   tar.FormatPAX,
	}
	if e.mode&fs.ModeSticky != 0 {
		h.Mode |= 0o1000
	}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, e.path+"/"
	case e.target != "":
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, e.target, 0o777
	}
	return h
}

// zipped compresses for files that are downloaded often and made once. The header has neither a name nor a time.
func zipped(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

// writeArchive writes the archive for those who unpack it where they like.
func (s source) writeArchive(name string, b *build, pages []page) error {
	list, err := s.files(map[string]string{
		"LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md",
		"examples/hello.js": "examples/hello.js", "systemd/pinwheel.service": "deploy/systemd/pinwheel.service",
	})
	if err != nil {
		return err
	}
	program, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	list = append(list,
		entry{path: "pinwheel", mode: 0o755, body: program},
		entry{path: "NOTICES", mode: 0o644, body: b.notices})
	for _, p := range pages {
		list = append(list, entry{path: p.archive, mode: 0o644, body: p.text})
	}
	top := strings.TrimSuffix(filepath.Base(name), ".tar.gz")
	for i := range list {
		list[i].path = path.Join(top, list[i].path)
	}
	var tarred bytes.Buffer
	if err := writeTar(&tarred, list, s.time); err != nil {
		return err
	}
	body, err := zipped(tarred.Bytes())
	if err != nil {
		return err
	}
	return os.WriteFile(name, body, 0o644)
}

// writeSums writes the checksums of files in a directory, as sha256sum does.
func writeSums(dir string, names []string) error {
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(names)) {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		h := sha256.New()
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", h.Sum(nil), name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(b.String()), 0o644)
}
