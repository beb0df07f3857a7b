package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// user is the user and the group of the image.
const user = 10001

// deb is a package of Debian of which the image has files.
type deb struct {
	name, version, arch string
	control             []byte
	files               []entry
}

// wantedFiles are the packages of the image with what the program needs of each: the directories and files that begin
// so. glibc's modules for character sets are left out, which take more than the library.
var wantedFiles = map[string][]string{
	"base-files":      {"usr/lib/os-release", "etc/os-release", "etc/debian_version"},
	"ca-certificates": {"usr/share/ca-certificates/mozilla/"},
	"libc6":           {"lib/*.so*", "lib64/"},
	"libgcc-s1":       {"lib/*.so*", "usr/lib/*.so*"}, // glibc loads it when a thread is cancelled
	"tzdata":          {"usr/share/zoneinfo/"},
}

// wants says whether the image has a file of a package. Licences always.
func wants(name, file string) bool {
	if file == "usr/share/doc/"+name+"/copyright" {
		return true
	}
	return slices.ContainsFunc(wantedFiles[name], func(pattern string) bool {
		if dir, suffix, glob := strings.Cut(pattern, "*"); glob {
			base := path.Base(file)
			return strings.HasPrefix(file, dir) && strings.Contains(base, strings.Trim(suffix, "*")) &&
				!strings.Contains(file, "/gconv/") && !strings.Contains(file, "/audit/")
		}
		return file == pattern || strings.HasSuffix(pattern, "/") && strings.HasPrefix(file, pattern)
	})
}

// fetchDebs downloads the packages for an architecture from the servers of this machine's apt, which checks their
// signatures. It has its own lists in dir: those of the machine do not change.
func fetchDebs(ctx context.Context, arch, dir string) ([]deb, error) {
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	conf := fmt.Sprintf(`APT::Architecture %[1]q; #clear APT::Architectures; APT::Architectures { %[1]q; };
Dir::State "%[2]s/state"; Dir::State::status "%[2]s/state/status"; Dir::Cache "%[2]s/cache";
APT::Sandbox::User "root"; Acquire::Languages "none"; APT::Update::Post-Invoke-Success ""; APT::Update::Post-Invoke "";
`, arch, dir)
	file := filepath.Join(dir, "apt.conf")
	if err := errors.Join(os.WriteFile(file, []byte(conf), 0o600),
		os.WriteFile(filepath.Join(dir, "state/status"), nil, 0o600)); err != nil {
		return nil, err
	}
	env := []string{"APT_CONFIG=" + file}
	if _, err := output(ctx, dir, env, "apt-get", "-q", "update"); err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(wantedFiles))
	download := append([]string{"-q", "download"}, names...)
	if _, err := output(ctx, filepath.Join(dir, "debs"), env, "apt-get", download...); err != nil {
		return nil, err
	}
	var debs []deb
	for _, name := range names {
		found, err := filepath.Glob(filepath.Join(dir, "debs", name+"_*.deb"))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("apt-get download %s: it left %v: %w", name, found, err)
		}
		d, err := readDeb(ctx, name, found[0])
		if err != nil {
			return nil, err
		}
		debs = append(debs, d)
	}
	return debs, nil
}

// readDeb reads what the image wants of a package.
func readDeb(ctx context.Context, name, file string) (deb, error) {
	control, err := outputBytes(ctx, ".", nil, "dpkg-deb", "--field", file)
	if err != nil {
		return deb{}, err
	}
	d := deb{name: name, control: control}
	for line := range strings.Lines(string(control)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "Version":
			d.version = value
		case "Architecture":
			d.arch = value
		}
	}
	tarred, err := outputBytes(ctx, ".", nil, "dpkg-deb", "--fsys-tarfile", file)
	if err != nil {
		return deb{}, err
	}
	bodies := map[string][]byte{}
	for t := tar.NewReader(bytes.NewReader(tarred)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return deb{}, err
		}
		e := entry{
			path:   strings.TrimPrefix(path.Clean(h.Name), "/"),
			mode:   fs.FileMode(h.Mode).Perm(),
			target: h.Linkname,
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if e.body, err = io.ReadAll(t); err != nil {
				return deb{}, err
			}
			bodies[e.path] = e.body
		case tar.TypeLink: // a second name of a file before it
			e.body, e.target = bodies[path.Clean(h.Linkname)], ""
		case tar.TypeSymlink:
		default:
			continue
		}
		if wants(name, e.path) {
			d.files = append(d.files, e)
		}
	}
	return d, nil
}

// root returns the files of the image beside the program's.
func root(debs []deb) ([]entry, error) {
	var list []entry
	var roots bytes.Buffer
	for _, d := range debs {
		licence := func(e entry) bool { return strings.HasPrefix(e.path, "usr/share/doc/") }
		if !slices.ContainsFunc(d.files, func(e entry) bool { return !licence(e) }) {
			return nil, fmt.Errorf("%s has nothing of what the image needs of it", d.name)
		}
		for _, e := range d.files {
			if strings.HasPrefix(e.path, "usr/share/ca-certificates/") {
				roots.Write(bytes.TrimSpace(e.body)) // update-ca-certificates does the same
				roots.WriteByte('\n')
				continue
			}
			list = append(list, e)
		}
		// Scanners of images read what is installed here, as in images without dpkg.
		list = append(list, entry{path: "var/lib/dpkg/status.d/" + d.name, mode: 0o644, body: d.control})
	}
	if n := bytes.Count(roots.Bytes(), []byte("BEGIN CERTIFICATE")); n < 50 {
		return nil, fmt.Errorf("there are %d roots of certificates", n)
	}
	text := func(name, body string) { list = append(list, entry{path: name, mode: 0o644, body: []byte(body)}) }
	text("etc/ssl/certs/ca-certificates.crt", roots.String())
	text("etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\n"+
		"pinwheel:x:%d:%d:pinwheel:/var/lib/pinwheel:/sbin/nologin\n", user, user))
	text("etc/group", fmt.Sprintf("root:x:0:\npinwheel:x:%d:\n", user))
	text("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
	for _, dir := range []string{"proc", "dev", "sys", "run"} { // runtimes mount there, also where they cannot make them
		list = append(list, entry{path: dir, mode: fs.ModeDir | 0o755})
	}
	return append(list,
		entry{path: "tmp", mode: fs.ModeDir | fs.ModeSticky | 0o777},
		entry{path: "var/lib/pinwheel", mode: fs.ModeDir | 0o750, owner: user},
	), nil
}
