package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // registers its format
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm" // registers its format
)

// packageVersion is a version as Debian and RPM compare them: releases come after what leads to them.
func packageVersion(v string) string {
	number, rest, pre := strings.Cut(strings.TrimPrefix(v, "v"), "-")
	if !pre {
		return number
	}
	return number + "~" + strings.ReplaceAll(rest, "-", ".")
}

// staged is a file that a package gets, with the path that it has in the system.
type staged struct {
	dst  string
	kind string
	mode os.FileMode
	body []byte
}

// writePackages writes the Debian and the RPM package beside stem. It puts their files into the directory stage first.
func (s source) writePackages(stem string, b *build, pages []page, stage string) error {
	for _, format := range []string{"deb", "rpm"} {
		list, err := s.packageFiles(b, pages, format)
		if err != nil {
			return err
		}
		dir := filepath.Join(stage, format)
		info, err := s.packageInfo(b, format, dir, list)
		if err != nil {
			return err
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return err
		}
		var made bytes.Buffer
		if err := packager.Package(info, &made); err != nil {
			return err
		}
		if err := os.WriteFile(stem+"."+format, made.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// packageFiles returns what a package installs. The unit of nats-server is an example there: a package of that program
// has its own.
func (s source) packageFiles(b *build, pages []page, format string) ([]staged, error) {
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	unit, err := s.read("deploy/systemd/pinwheel.service")
	if err != nil {
		return nil, err
	}
	installed := bytes.ReplaceAll(unit, []byte("/usr/local/bin/"), []byte("/usr/bin/"))
	if bytes.Equal(installed, unit) {
		return nil, fmt.Errorf("pinwheel.service does not start a program of /usr/local/bin")
	}
	environment, err := s.read("deploy/dist/install/environment")
	if err != nil {
		return nil, err
	}
	const docs = "/usr/share/doc/pinwheel/"
	list := []staged{
		{
			dst:  "/usr/bin/pinwheel",
			kind: files.TypeFile,
			mode: 0o755,
			body: program,
		},
		plain("/usr/lib/systemd/system/pinwheel.service", installed),
		{
			dst:  "/etc/pinwheel/environment",
			kind: files.TypeConfigNoReplace,
			mode: 0o600,
			body: environment,
		},
		plain(docs+"NOTICES", b.notices),
	}
	examples := docs + "examples/"
	for dst, from := range map[string]string{
		docs + "copyright": "LICENSE", docs + "README.md": "README.md", docs + "CHANGELOG.md": "CHANGELOG.md",
		examples + "hello.js":            "examples/hello.js",
		examples + "nats-server.service": "deploy/systemd/nats-server.service",
		examples + "nats.conf":           "deploy/nats/nats.conf",
		examples + "users.conf":          "deploy/nats/users.conf",
	} {
		text, err := s.read(from)
		if err != nil {
			return nil, err
		}
		list = append(list, plain(dst, text))
	}
	for _, p := range pages {
		dst, text := p.deb, p.text
		if format == "rpm" {
			dst = p.rpm
		}
		list = append(list, plain(dst, text))
	}
	return zipPages(list)
}

// zipPages compresses what has a name that says so.
func zipPages(list []staged) ([]staged, error) {
	for i, f := range list {
		if !strings.HasSuffix(f.dst, ".gz") {
			continue
		}
		body, err := zipped(f.body)
		if err != nil {
			return nil, err
		}
		list[i].body = body
	}
	return list, nil
}

// plain is a file that everybody may read.
func plain(dst string, body []byte) staged {
	return staged{
		dst:  dst,
		kind: files.TypeFile,
		mode: 0o644,
		body: body,
	}
}

// packageInfo describes a package. Its files and scripts are written to dir.
func (s source) packageInfo(b *build, format, dir string, list []staged) (*nfpm.Info, error) {
	contents := make(files.Contents, 0, len(list))
	for _, f := range list {
		from := filepath.Join(dir, "files", f.dst)
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			return nil, err
		}
		if err := os.WriteFile(from, f.body, 0o600); err != nil {
			return nil, err
		}
		contents = append(contents, &files.Content{
			Source:      from,
			Destination: f.dst,
			Type:        f.kind,
			FileInfo: &files.ContentFileInfo{
				Owner: "root",
				Group: "root",
				Mode:  f.mode,
				MTime: s.time,
			},
		})
	}
	depends := []string{"libc6 (>= " + b.glibc + ")", "passwd", "ca-certificates"}
	if format == "rpm" {
		depends = []string{"glibc >= " + b.glibc, "shadow-utils", "ca-certificates"}
	}
	scripts := filepath.Join(s.dir, "deploy/dist/install")
	info := &nfpm.Info{
		Name:          "pinwheel",
		Arch:          b.arch,
		Platform:      "linux",
		Version:       packageVersion(b.version()),
		VersionSchema: "none",
		Release:       "1",
		Section:       "net",
		Priority:      "optional",
		Maintainer:    "The Pinwheel authors <" + home + ">",
		Description: "JavaScript and TypeScript event handlers on NATS JetStream\n" +
			"Pinwheel runs handlers in V8 isolates that each belong to one owner.",
		Homepage: home,
		License:  "Apache-2.0",
		MTime:    s.time,
		Overridables: nfpm.Overridables{
			Depends:  depends,
			Contents: contents,
			Scripts: nfpm.Scripts{
				PostInstall: filepath.Join(scripts, "postinstall.sh"),
				PreRemove:   filepath.Join(scripts, "preremove.sh"),
				PostRemove:  filepath.Join(scripts, "postremove.sh"),
			},
			RPM: nfpm.RPM{BuildHost: "pinwheel", Summary: "JavaScript and TypeScript event handlers on NATS JetStream"},
		},
	}
	return nfpm.WithDefaults(info), nil
}
