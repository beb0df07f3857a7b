package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/isolates"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// rows returns the cells of the table rows of a page that have n columns.
func rows(page string, n int) [][]string {
	var list [][]string
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if len(cells) == n {
			list = append(list, cells)
		}
	}
	return list
}

var ticked = regexp.MustCompile("`([^`\n]+)`")

func TestWireNamesEveryHeaderAndNoOther(t *testing.T) {
	page := read(t, "docs/reference/wire.md")
	known := map[string]bool{}
	for name, value := range constants(t, "events") {
		if text, ok := value.(string); ok && (strings.HasPrefix(name, "Header") || strings.HasPrefix(name, "headerDead") ||
			name == "deadOriginal") {
			if strings.HasSuffix(text, "-") {
				text += "*"
			}
			known[text] = true
			require.Contains(t, page, "`"+text+"`", "docs/reference/wire.md does not name the header of events.%s", name)
		}
	}
	require.Greater(t, len(known), 30)
	for _, name := range []string{"Http-Header-Accept"} { // an example
		known[name] = true
	}
	header := regexp.MustCompile(`^[A-Z][A-Za-z]+(-[A-Z][A-Za-z]+)+(-\*)?$`)
	for _, m := range ticked.FindAllStringSubmatch(page, -1) {
		name, _, _ := strings.Cut(m[1], ":")
		if header.MatchString(name) && !known[name] {
			t.Errorf("docs/reference/wire.md names %s, which is no header of events", name)
		}
	}
}

func TestWireTellsTheReasons(t *testing.T) {
	page := read(t, "docs/reference/wire.md")
	told := map[string]bool{}
	for _, row := range rows(page, 4) {
		r, err := events.ParseReason(strings.Trim(row[0], "`"))
		if err != nil {
			continue
		}
		told[string(r)] = true
		require.Equal(t, strconv.Itoa(r.Status()), row[1], "status of %s", r)
		require.Equal(t, map[bool]string{true: "yes", false: "no"}[r.Transient()], row[2], "transience of %s", r)
	}
	require.Len(t, told, len(events.Reasons), "docs/reference/wire.md has a row for each reason")
}

func TestNamedTestsExist(t *testing.T) {
	have := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && f.test() && fn.Recv == nil {
				have[path.Dir(f.path)+"."+fn.Name.Name] = true
			}
		}
	}
	named := regexp.MustCompile("`([a-z0-9/]+\\.Test\\w+)(?:/[^`]*)?`")
	n := 0
	for _, p := range append(pages(t), "CONTRIBUTING.md", "README.md") {
		for _, m := range named.FindAllStringSubmatch(read(t, p), -1) {
			n++
			if !have[m[1]] {
				t.Errorf("%s names the test %s, which does not exist", p, m[1])
			}
		}
	}
	require.Greater(t, n, 40)
}

// pages returns all pages under docs.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	require.NoError(t, filepath.WalkDir("docs", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".md") {
			list = append(list, path)
		}
		return err
	}))
	require.NotEmpty(t, list)
	return list
}

func TestLimitsAreThoseOfTheCode(t *testing.T) {
	page := read(t, "docs/reference/limits.md")
	checked := 0
	for _, row := range rows(page, 4) {
		group, key, ok := strings.Cut(strings.Trim(row[0], "`"), ".")
		if !ok {
			continue
		}
		switch group {
		case "limits":
			require.Equal(t, jsonField(t, workers.DefaultLimits, key), quantity(t, row[1]), "default of %s", row[0])
			require.Equal(t, jsonField(t, workers.MaxLimits, key), quantity(t, row[2]), "maximum of %s", row[0])
		case "lifetime":
			require.Equal(t, "none", row[1])
			require.Equal(t, jsonField(t, workers.MaxLifetime, key), quantity(t, row[2]), "maximum of %s", row[0])
		case "batch":
			require.Equal(t, jsonField(t, workers.DefaultBatch, key), quantity(t, row[1]), "default of %s", row[0])
			require.Equal(t, jsonField(t, workers.MaxBatch, key), quantity(t, row[2]), "maximum of %s", row[0])
		case "retries":
			require.Equal(t, jsonField(t, workers.DefaultRetries, key), quantity(t, row[1]), "default of %s", row[0])
			checkMostRetries(t, key, quantity(t, row[2]))
		}
		checked++
	}
	fields := reflect.TypeFor[workers.Limits]().NumField() + reflect.TypeFor[workers.Lifetime]().NumField() +
		reflect.TypeFor[workers.Batch]().NumField() + reflect.TypeFor[workers.Retries]().NumField() - 1 // fetch is a switch
	require.Equal(t, fields, checked, "docs/reference/limits.md has a row for each field")
	for _, row := range rows(page, 3) {
		if name := strings.Trim(row[2], "`"); strings.Contains(name, ".") {
			require.Equal(t, codeValue(t, name), quantity(t, row[1]), "%s: %s", row[0], name)
			checked++
		}
	}
	require.Greater(t, checked, 30)
	require.Contains(t, strings.Join(strings.Fields(page), " "), fmt.Sprintf("less %d KiB (`consumer.payloadHeadroom`)",
		int(codeValue(t, "consumer.payloadHeadroom"))>>10))
}

// jsonField returns the field of v with this name in JSON. Times are in milliseconds there.
func jsonField(t *testing.T, v any, key string) float64 {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	var fields map[string]float64
	require.NoError(t, json.Unmarshal(text, &fields))
	require.Contains(t, fields, key)
	if strings.HasSuffix(key, "Ms") || key == "initial" || key == "max" {
		return fields[key] * float64(time.Millisecond)
	}
	return fields[key]
}

// checkMostRetries checks that a retry field may be at most most.
func checkMostRetries(t *testing.T, key string, most float64) {
	t.Helper()
	set := func(value float64) error {
		if strings.HasSuffix(key, "Ms") {
			value /= float64(time.Millisecond)
		}
		var r workers.Retries
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{%q: %v}`, key, int64(value)), &r), key)
		return r.Validate()
	}
	require.NoError(t, set(most), key)
	require.Error(t, set(most+max(1, float64(time.Millisecond)*b2f(strings.HasSuffix(key, "Ms")))), key)
}

func b2f(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

var units = map[string]float64{
	"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	"ms": float64(time.Millisecond), "s": float64(time.Second), "min": float64(time.Minute), "h": float64(time.Hour),
}

// quantity parses "64 KiB" or "5 min". Times are in nanoseconds.
func quantity(t *testing.T, cell string) float64 {
	t.Helper()
	number, unit, _ := strings.Cut(cell, " ")
	n, err := strconv.ParseFloat(number, 64)
	require.NoError(t, err, cell)
	require.Contains(t, units, unit, cell)
	return n * units[unit]
}

// codeValue returns the value of a constant like isolates.maxTimers, or of a field of a room's default configuration,
// like isolates.Config.MaxParked.
func codeValue(t *testing.T, name string) float64 {
	t.Helper()
	room, rest, _ := strings.Cut(name, ".")
	if field, ok := strings.CutPrefix(rest, "Config."); ok {
		config := map[string]any{"isolates": isolates.DefaultConfig(1), "consumer": consumer.DefaultConfig()}[room]
		v := reflect.ValueOf(config).FieldByName(field)
		require.True(t, v.IsValid() && v.CanInt(), name)
		return float64(v.Int())
	}
	dir := map[string]string{"workers": "events/workers"}
	v, ok := constants(t, cmp.Or(dir[room], room))[rest]
	require.True(t, ok, "there is no constant %s", name)
	n, ok := v.(float64)
	require.True(t, ok, "%s is no number", name)
	return n
}

// constants returns the constants of a package: strings, and numbers as float64. It leaves out expressions that the
// tables do not need.
func constants(t *testing.T, dir string) map[string]any {
	t.Helper()
	values := map[string]any{}
	for _, f := range goFiles(t) {
		if path.Dir(f.path) != dir || f.test() {
			continue
		}
		for _, d := range f.ast.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.ValueSpec)
				for i, name := range spec.Names {
					if i < len(spec.Values) {
						if v := evaluate(spec.Values[i]); v != nil {
							values[name.Name] = v
						}
					}
				}
			}
		}
	}
	return values
}

func evaluate(e ast.Expr) any {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X)
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
		if n, err := strconv.ParseFloat(strings.ReplaceAll(e.Value, "_", ""), 64); err == nil {
			return n
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "time" {
			n := map[string]time.Duration{"Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
				"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}[e.Sel.Name]
			return float64(n)
		}
	case *ast.BinaryExpr:
		x, ok1 := evaluate(e.X).(float64)
		y, ok2 := evaluate(e.Y).(float64)
		switch {
		case !ok1 || !ok2:
		case e.Op == token.MUL:
			return x * y
		case e.Op == token.SHL:
			return x * float64(int64(1)<<int64(y))
		}
	}
	return nil
}

func TestReadmeIsTrue(t *testing.T) {
	page := read(t, "README.md")
	screen, _, _ := strings.Cut(page, "\n## ")
	for _, command := range []string{
		"go run . dev examples/hello.js", `go run . send fetch dev/hello --data '{"name":"Ada"}'`, "go test ./...",
	} {
		require.Contains(t, screen, "\n"+command+"\n", "the first screen of README.md")
	}
	require.Contains(t, screen, "```js\n"+read(t, "examples/hello.js")+"```\n", "README.md shows examples/hello.js as it is")
}

// The figures of the first table of README.md are measured ones, and the commands beside them exist.
func TestReadmeShowsWhatWasMeasured(t *testing.T) {
	screen, _, _ := strings.Cut(read(t, "README.md"), "\n## ")
	performance, made := read(t, "docs/development/performance.md"), read(t, "Makefile")
	listed := rows(screen, 3)[1:]
	require.Len(t, listed, 4)
	for _, row := range listed {
		command := strings.Trim(row[2], "`")
		target, built := strings.CutPrefix(command, "make ")
		scenario, load := strings.CutPrefix(command, "go run ./loadtest --scenario ")
		require.True(t, built || load, command)
		if built {
			require.Contains(t, made, "\n"+target+":", command)
			continue
		}
		measured := regexp.MustCompile("(?m)^.*(?:\\| " + scenario + " saturation one \\||`" + scenario + "`).*$")
		lines := strings.Join(measured.FindAllString(performance, -1), "\n")
		for _, figure := range regexp.MustCompile(`\d+\.\d|\d{3,}`).FindAllString(row[1], -1) {
			require.Contains(t, lines, figure, row[1])
		}
	}
}

// The command accepts the command lines in the pages. --help stops them after the flags are parsed.
func TestCommandLinesAreUnderstood(t *testing.T) {
	line := regexp.MustCompile(`(?m)^(?:[A-Z_]+=\S+ )*(?:pinwheel|go run \.) (.+)$`)
	n := 0
	for _, p := range append(pages(t), "README.md") {
		for _, m := range line.FindAllStringSubmatch(read(t, p), -1) {
			n++
			var out strings.Builder
			args := append(strings.Fields(strings.ReplaceAll(m[1], "'", "")), "--help")
			require.Zero(t, cli.Main(args, strings.NewReader(""), &out, &out), "%s: %s: %s", p, m[0], out.String())
		}
	}
	require.Greater(t, n, 6)
}

func TestReadmeListsTheRooms(t *testing.T) {
	told := map[string]bool{}
	for _, row := range rows(read(t, "README.md"), 2) {
		if m := ticked.FindStringSubmatch(row[0]); m != nil {
			told[strings.TrimSuffix(m[1], "/")] = true
		}
	}
	for name := range house {
		if room, _, _ := strings.Cut(name, "/"); name != "" && !told[room] {
			t.Errorf("README.md does not say what %s is for", room)
		}
	}
}

// The list of what was measured when says what the tables say.
func TestTablesOfPerformanceAreListed(t *testing.T) {
	page := read(t, "docs/development/performance.md")
	var listed, made []string
	for _, row := range rows(page, 4) {
		if regexp.MustCompile(`^[0-9a-f]{7,}$`).MatchString(row[1]) {
			listed = append(listed, row[1]+" "+row[2])
		}
	}
	for _, m := range regexp.MustCompile(`commit ([0-9a-f]{7,})\+?; (\d{4}-\d\d-\d\d \d\d:\d\d):\d\d to`).FindAllStringSubmatch(page, -1) {
		made = append(made, m[1]+" "+m[2])
	}
	require.NotEmpty(t, made)
	require.ElementsMatch(t, made, listed)
}
