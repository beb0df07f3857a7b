package deploy

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

// Manifest says how a worker is to be run. It is the file NAME.pinwheel.json next to the source
// NAME.js, and the magic comment "// @mode …" at the head of the source.
type Manifest struct {
	Mode     events.Mode       // "" = pinned
	Vars     map[string]string // env.NAME is this string
	Queues   map[string]string // env.NAME.send(…) publishes a task to this worker of the same owner
	Limits   events.Limits     // zero fields = default
	Retries  events.Retries    // zero fields = default
	Lifetime events.Lifetime   // zero fields = no bound; of mode persistent only
	OnDead   *events.DeadHook  // who is told of dead letters; nil = nobody

	Idempotent bool // an event that has succeeded is not run again

	Schedules []events.Schedule // when the scheduled handler runs by itself
}

const (
	// maxEnvName is the longest name in env, bytes.
	maxEnvName = 128
	// maxVars bounds all vars of a worker together, bytes: they travel with every version to every process.
	maxVars = 128 << 10
)

// ManifestSuffix follows the source's base name in the manifest's file name.
const ManifestSuffix = ".pinwheel.json"

func manifestPath(source string) string {
	return filepath.Join(filepath.Dir(source), baseName(source)+ManifestSuffix)
}

// readManifest reads what the source's magic comments and the manifest file say. No file is no error.
func readManifest(p *project, sourcePath string, source []byte) (Manifest, error) {
	mode, modeErr := magicMode(sourcePath, source)
	path := manifestPath(sourcePath)
	text, err := p.read(path, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{Mode: mode}, modeErr
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("read manifest %s: %w", path, err)
	}
	m, err := ParseManifest(path, text)
	if err := joinSourceErrors(modeErr, err); err != nil {
		return Manifest{}, err
	}
	if mode != "" && m.Mode != "" && mode != m.Mode {
		return Manifest{}, sourceError(path, text, -1, "mode is %q here and %q in %s: say it once", m.Mode, mode, sourcePath)
	}
	m.Mode = cmp.Or(m.Mode, mode)
	if err := m.checkLifetime(); err != nil {
		return Manifest{}, sourceError(path, text, -1, "%v", err)
	}
	return m, nil
}

// magicMode finds "// @mode NAME" in the comments before the first line of code.
func magicMode(path string, source []byte) (events.Mode, error) {
	offset, inBlock := int64(0), false
	for line := range strings.SplitAfterSeq(string(source), "\n") {
		text := strings.TrimSpace(line)
		if m := modeComment.FindStringSubmatchIndex(line); m != nil && !inBlock {
			mode := events.Mode(line[m[2]:m[3]])
			if err := checkMode(mode); err != nil {
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

func checkMode(m events.Mode) error {
	if m == "" || slices.Contains(events.Modes[:], m) {
		return nil
	}
	return fmt.Errorf("mode %q: it is one of %s", m, joinNames(events.Modes[:]))
}

func joinNames[S ~string](names []S) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}

// with is m with vars and queues that were given otherwise, which win. A name given as the one no longer is the other.
func (m Manifest) with(vars, queues map[string]string) Manifest {
	m.Vars, m.Queues = merge(m.Vars, vars, queues), merge(m.Queues, queues, vars)
	return m
}

// merge is base with over in it, and without what other names instead; nil when nothing is left, as a record has it.
func merge(base, over, other map[string]string) map[string]string {
	merged := make(map[string]string, len(base)+len(over))
	for name, value := range base {
		if _, elsewhere := other[name]; !elsewhere {
			merged[name] = value
		}
	}
	maps.Copy(merged, over)
	if len(merged) == 0 {
		return nil
	}
	return merged
}

// Validate returns an error that begins with the path of the field that is wrong, as in
// "limits.cpuMs is …", and says what is allowed.
func (m Manifest) Validate() error {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(m.Vars)) {
		if err := checkEnvName("vars", name); err != nil {
			return err
		}
		total += len(name) + len(m.Vars[name])
		if _, both := m.Queues[name]; both {
			return fmt.Errorf("vars.%s is a queue too: a name in env is one thing", name)
		}
	}
	if total > maxVars {
		return fmt.Errorf("vars have %d bytes in all: at most %d are allowed", total, maxVars)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Queues)) {
		if err := checkEnvName("queues", name); err != nil {
			return err
		}
		if err := events.CheckName("worker", m.Queues[name]); err != nil {
			return fmt.Errorf("queues.%s is no worker: %w", name, err)
		}
	}
	if err := m.Limits.Validate(); err != nil {
		return err
	}
	if err := m.Retries.Validate(); err != nil {
		return err
	}
	if m.OnDead != nil {
		if err := m.OnDead.Validate(); err != nil {
			return err
		}
	}
	if err := m.Lifetime.Validate(); err != nil {
		return err
	}
	if err := checkSchedules(m.Schedules); err != nil {
		return err
	}
	if err := checkMode(m.Mode); err != nil || m.Mode == "" { // a magic comment may still name the mode
		return err
	}
	return m.checkLifetime()
}

func (m Manifest) checkLifetime() error {
	if m.Lifetime == (events.Lifetime{}) || m.Mode == events.Persistent {
		return nil
	}
	return fmt.Errorf("lifetime is for mode %q: the mode is %q", events.Persistent, m.Mode.OrDefault())
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func checkEnvName(what, name string) error {
	if !envName.MatchString(name) || len(name) > maxEnvName {
		return fmt.Errorf("%s.%s is no name in env: it is A-Z a-z 0-9 _, not a digit first, at most %d bytes", what, name, maxEnvName)
	}
	return nil
}
