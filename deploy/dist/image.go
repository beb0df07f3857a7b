package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageArchive is an OCI layout in a tar file, as skopeo and podman read it: oci-archive:pinwheel-image.tar
const imageArchive = "pinwheel-image.tar"

// writeImage writes the image of all architectures, and what is in each.
func (s source) writeImage(ctx context.Context, builds []*build, work, out string) (made []string, err error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	images, debs := make([]v1.Image, len(builds)), make([][]deb, len(builds))
	if err := atOnce(len(builds), func(i int) (err error) {
		if debs[i], err = fetchDebs(ctx, builds[i].arch, filepath.Join(work, "root-"+builds[i].arch)); err != nil {
			return err
		}
		images[i], err = s.image(builds[i], debs[i])
		return err
	}); err != nil {
		return nil, err
	}
	for i, b := range builds {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        images[i],
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.arch}},
		})
		list := "pinwheel-image-" + b.arch + ".cdx.json"
		if err := s.writeSBOM(filepath.Join(out, list), b, debs[i]); err != nil {
			return nil, err
		}
		made = append(made, list)
	}
	dir := filepath.Join(work, "image")
	at, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return nil, err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": builds[0].version()})
	if err := at.AppendIndex(index, name); err != nil {
		return nil, err
	}
	list, err := tree(dir)
	if err != nil {
		return nil, err
	}
	f, err := os.Create(filepath.Join(out, imageArchive))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := writeTar(f, list, s.time); err != nil {
		return nil, err
	}
	return append(made, imageArchive), f.Close()
}

// tree returns the files of a directory.
func tree(dir string) (list []entry, err error) {
	root := os.DirFS(dir)
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(root, name)
		list = append(list, entry{path: name, mode: 0o644, body: body})
		return err
	})
	return list, err
}

// image returns the image of an architecture: the system, and above it the program.
func (s source) image(b *build, debs []deb) (v1.Image, error) {
	system, err := root(debs)
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(b.path)
	if err != nil {
		return nil, err
	}
	licence, err := s.read("LICENSE")
	if err != nil {
		return nil, err
	}
	img := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	img = mutate.ConfigMediaType(img, types.OCIConfigJSON)
	if img, err = mutate.ConfigFile(img, s.imageConfig(b)); err != nil {
		return nil, err
	}
	for _, entries := range [][]entry{system, {
		{path: "usr/local/bin/pinwheel", mode: 0o755, body: program},
		{path: "usr/share/doc/pinwheel/LICENSE", mode: 0o644, body: licence},
		{path: "usr/share/doc/pinwheel/NOTICES", mode: 0o644, body: b.notices},
	}} {
		var tarred bytes.Buffer
		if err := writeTar(&tarred, entries, s.time); err != nil {
			return nil, err
		}
		opener := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tarred.Bytes())), nil }
		layer, err := tarball.LayerFromOpener(opener, tarball.WithCompressionLevel(gzip.BestCompression),
			tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		add := mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: s.time}, CreatedBy: "deploy/dist"}}
		if img, err = mutate.Append(img, add); err != nil {
			return nil, err
		}
	}
	return img, nil
}

// imageConfig is that of deploy/Dockerfile.
func (s source) imageConfig(b *build) *v1.ConfigFile {
	return &v1.ConfigFile{
		OS:           "linux",
		Architecture: b.arch,
		Created:      v1.Time{Time: s.time},
		RootFS:       v1.RootFS{Type: "layers"},
		Config: v1.Config{
			User:       "10001:10001",
			WorkingDir: "/var/lib/pinwheel",
			Env: []string{
				"PATH=/usr/local/bin", "PINWHEEL_DATA=/var/lib/pinwheel/data", "PINWHEEL_ADMIN_ADDR=0.0.0.0:8422",
			},
			ExposedPorts: map[string]struct{}{"8422/tcp": {}},
			StopSignal:   "SIGTERM",
			Entrypoint:   []string{"/usr/local/bin/pinwheel"},
			Cmd:          []string{"serve"},
			Labels: map[string]string{
				"org.opencontainers.image.title":    "pinwheel",
				"org.opencontainers.image.source":   home,
				"org.opencontainers.image.licenses": "Apache-2.0",
				"org.opencontainers.image.version":  b.version(),
				"org.opencontainers.image.revision": s.commit,
				"org.opencontainers.image.created":  s.time.Format("2006-01-02T15:04:05Z07:00"),
			},
		},
	}
}
