package deploy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/deploy/assets"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/assetstore"
)

// noPages are files beside a manifest that are no files of a site.
var noPages = []string{"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "tsconfig.json", "jsconfig.json"}

// files reads the directory that the manifest names; nil = it names none.
func (l layout) files(a *events.Assets) (*assets.Folder, error) {
	if a == nil {
		return nil, nil
	}
	base := filepath.Dir(l.file)
	real, err := realDir(base)
	if err != nil {
		return nil, err
	}
	if why := wrongDirectory(real, a.Directory); why != "" {
		return nil, l.manifest.Fault("assets.directory", "assets.directory is %.200q: %s", a.Directory, why)
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(real, filepath.FromSlash(a.Directory)))
	if err != nil {
		return nil, err
	}
	var skip []string
	if dir == real {
		for _, m := range directoryManifests {
			skip = append(skip, m.file)
		}
		skip = append(append(skip, noPages...), filepath.Base(l.file))
	}
	name := filepath.Join(base, filepath.FromSlash(a.Directory))
	f, err := assets.Open(dir, name, skip...)
	var fault *assets.Error
	if errors.As(err, &fault) {
		return nil, &SourceError{Diagnostics: []Diagnostic{{File: filepath.Join(name, fault.File), Line: fault.Line, Column: fault.Column, Text: fault.Text}}}
	}
	return f, err
}

// wrongDirectory says why path is no directory of files in the directory dir, which is without links; "" = it is.
func wrongDirectory(dir, path string) string {
	if why := wrongPath(path); why != "" {
		return why
	}
	real, err := filepath.EvalSymlinks(filepath.Join(dir, filepath.FromSlash(path)))
	switch {
	case err != nil:
		return "there is no such directory"
	case !within(dir, real):
		return "a link on it leads out of the directory of the manifest"
	}
	if _, err = realDir(real); err != nil {
		return "it is no directory"
	}
	return ""
}

// site is the code of a worker that has files only.
func site() *Bundle { return &Bundle{Code: "export default {};\n", File: "index.js"} }

// uploading is what a deploy stores of the files of its version.
type uploading struct {
	store *assetstore.Store
	files *assets.Folder // nil = the version has none
	under *assetstore.Deploy
	done  assetstore.Uploaded
}

// upload stores the files, before the version that names them.
func (u *uploading) upload(ctx context.Context, w *events.Worker) (err error) {
	if u.files == nil || u.under != nil {
		return nil
	}
	if u.under, err = u.store.Begin(ctx, w.Owner); err == nil {
		u.done, err = u.store.Upload(ctx, w.Owner, u.files)
	}
	if err != nil {
		return fmt.Errorf("deploy %s: %w", w.Target(), err)
	}
	return nil
}

// end stores again what another deploy has deleted meanwhile.
func (u *uploading) end(ctx context.Context) error {
	if u.under == nil {
		return nil
	}
	_, err := u.under.End(ctx, u.files)
	return err
}

// sweep deletes the files of an owner that no kept version has, because gone had some. A file that cannot be deleted only
// costs space.
func sweep(ctx context.Context, s *Store, owner string, gone []*record) {
	for _, r := range gone {
		if r.Assets == nil {
			continue
		}
		if err := sweepFiles(ctx, s, owner); err != nil {
			s.cfg.Log.Warn().Err(err).Str("owner", owner).Msg("files of old versions not deleted")
		}
		return
	}
}

func sweepFiles(ctx context.Context, s *Store, owner string) error {
	d, err := s.files.Begin(ctx, owner)
	if err != nil {
		return err
	}
	var keep []string
	err = each(ctx, s.kv, owner+".*", func(e jetstream.KeyValueEntry) error {
		_, name, _ := strings.Cut(e.Key(), ".")
		k, err := s.kept(ctx, owner, name)
		for _, r := range k.records {
			if r.Assets != nil && r.Assets.Files != "" {
				keep = append(keep, r.Assets.Files)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	alone, err := d.End(ctx, nil)
	if err != nil || !alone {
		return err // the deploy that began meanwhile may need anything
	}
	_, err = d.Sweep(ctx, keep)
	return err
}
