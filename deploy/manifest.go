package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/cron"
)

// ManifestSuffix follows the source's base name in the manifest's file name.
const ManifestSuffix = ".pinwheel.json"

func manifestPath(source string) string {
	return filepath.Join(filepath.Dir(source), baseName(source)+ManifestSuffix)
}

// readManifest reads what the source's magic comments and the manifest file say. A missing file is no error.
func readManifest(p *project, sourcePath string, source []byte) (events.Spec, error) {
	mode, modeErr := magicMode(sourcePath, source)
	path := manifestPath(sourcePath)
	text, err := p.read(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return events.Spec{Mode: mode}, modeErr
	}
	if err != nil {
		return events.Spec{}, fmt.Errorf("read manifest %s: %w", path, err)
	}
	d := newManifestDecoder(path, text)
	spec, err := d.spec()
	switch {
	case modeErr != nil:
		return events.Spec{}, joinSourceErrors(modeErr, err)
	case err != nil:
		return events.Spec{}, err
	case mode != "" && spec.Mode != "" && mode != spec.Mode:
		return events.Spec{}, sourceError(path, text, -1, "mode is %q here and %q in %s: say it once", spec.Mode, mode, sourcePath)
	}
	spec.Mode = cmp.Or(spec.Mode, mode)
	if err := validate(spec); err != nil {
		return events.Spec{}, d.failAt(err)
	}
	return spec, nil
}

// ParseManifest reads a manifest file and validates it. Unknown keys, doubled keys, wrong types and values out of
// bounds are refused. The error is a *SourceError with file:line:column and what is allowed.
func ParseManifest(file string, text []byte) (events.Spec, error) {
	d := newManifestDecoder(file, text)
	spec, err := d.spec()
	if err != nil {
		return events.Spec{}, err
	}
	if err := validate(spec); err != nil {
		return events.Spec{}, d.failAt(err)
	}
	return spec, nil
}

// spec reads the document. Schedules without a name get their position as name.
func (d *manifestDecoder) spec() (events.Spec, error) {
	var spec events.Spec
	if err := d.document(&spec); err != nil {
		return events.Spec{}, err
	}
	for i := range spec.Schedules {
		spec.Schedules[i].Name = cmp.Or(spec.Schedules[i].Name, strconv.Itoa(i+1))
	}
	return spec, nil
}

// validate checks all of a specification. The error begins with the path of the field that is wrong.
func validate(spec events.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	for i, s := range spec.Schedules {
		if _, err := cron.Parse(s.Cron, s.TimeZone); err != nil {
			return fmt.Errorf("schedules[%d].%w", i, err)
		}
	}
	return nil
}

// magicMode finds "// @mode NAME" in the comments before the first line of code.
func magicMode(path string, source []byte) (events.Mode, error) {
	offset, inBlock := int64(0), false
	for line := range strings.SplitAfterSeq(string(source), "\n") {
		text := strings.TrimSpace(line)
		if m := modeComment.FindStringSubmatchIndex(line); m != nil && !inBlock {
			mode := events.Mode(line[m[2]:m[3]])
			if err := mode.Validate(); err != nil {
				return "", sourceError(path, source, offset+int64(m[2]), "%v", err)
			}
			return mode, nil
		}
		if strings.HasPrefix(text, "/*") {
			inBlock = true
		}
		if !inBlock && text != "" && !strings.HasPrefix(text, "//") && !strings.HasPrefix(text, "#!") {
			return "", nil
		}
		if strings.Contains(text, "*/") {
			inBlock = false
		}
		offset += int64(len(line))
	}
	return "", nil
}

var modeComment = regexp.MustCompile(`^\s*//\s*@mode[ \t]+(\S+)`)
