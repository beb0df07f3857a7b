package main_test

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/cli"
	"github.com/pinwheel-run/pinwheel/internal/natstest"
	"github.com/pinwheel-run/pinwheel/internal/supervisor"
	"github.com/pinwheel-run/pinwheel/isolates"
)

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// rows are the cells of the table rows of a page, of those with n columns.
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
	page := read(t, "docs/wire.md")
	known := map[string]bool{}
	for name, value := range constants(t, "events") {
		if text, ok := value.(string); ok && (strings.HasPrefix(name, "Header") || strings.HasPrefix(name, "headerDead") || name == "deadOriginal") {
			if strings.HasSuffix(text, "-") {
				text += "*"
			}
			known[text] = true
			require.Contains(t, page, "`"+text+"`", "docs/wire.md does not name the header of events.%s", name)
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
			t.Errorf("docs/wire.md names %s, which is no header of events", name)
		}
	}
}

func TestWireTellsTheReasons(t *testing.T) {
	page := read(t, "docs/wire.md")
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
	require.Len(t, told, len(events.Reasons), "docs/wire.md has a row for each reason")
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

// pages are all pages under docs.
func pages(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	more, err := filepath.Glob("docs/adr/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return append(list, more...)
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(#[^)]*)?\)`)
	for _, p := range append(pages(t), "README.md", "CONTRIBUTING.md", "CHANGELOG.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, p), -1) {
			_, err := os.Stat(filepath.Join(filepath.Dir(p), m[1]))
			require.NoError(t, err, "%s links to %s", p, m[1])
		}
	}
}

func TestLimitsAreThoseOfTheCode(t *testing.T) {
	page := read(t, "docs/limits.md")
	checked := 0
	for _, row := range rows(page, 4) {
		group, key, ok := strings.Cut(strings.Trim(row[0], "`"), ".")
		if !ok {
			continue
		}
		switch group {
		case "limits":
			require.Equal(t, jsonField(t, events.DefaultLimits, key), quantity(t, row[1]), "default of %s", row[0])
			require.Equal(t, jsonField(t, events.MaxLimits, key), quantity(t, row[2]), "maximum of %s", row[0])
		case "lifetime":
			require.Equal(t, "none", row[1])
			require.Equal(t, jsonField(t, events.MaxLifetime, key), quantity(t, row[2]), "maximum of %s", row[0])
		case "retries":
			require.Equal(t, jsonField(t, events.DefaultRetries, key), quantity(t, row[1]), "default of %s", row[0])
			checkMostRetries(t, key, quantity(t, row[2]))
		}
		checked++
	}
	fields := reflect.TypeFor[events.Limits]().NumField() + reflect.TypeFor[events.Lifetime]().NumField() +
		reflect.TypeFor[events.Retries]().NumField() - 1 // fetch is a switch
	require.Equal(t, fields, checked, "docs/limits.md has a row for each field")
	for _, row := range rows(page, 3) {
		if name := strings.Trim(row[2], "`"); strings.Contains(name, ".") {
			require.Equal(t, codeValue(t, name), quantity(t, row[1]), "%s: %s", row[0], name)
			checked++
		}
	}
	require.Greater(t, checked, 30)
	require.Contains(t, page, fmt.Sprintf("less %d KiB (`consumer.payloadHeadroom`)", int(codeValue(t, "consumer.payloadHeadroom"))>>10))
}

// jsonField is the field of v that has this name in JSON; times are in milliseconds there.
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

// checkMostRetries checks that a retry field may be most, and no more.
func checkMostRetries(t *testing.T, key string, most float64) {
	t.Helper()
	set := func(value float64) error {
		if strings.HasSuffix(key, "Ms") {
			value /= float64(time.Millisecond)
		}
		var r events.Retries
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

// quantity reads "64 KiB" or "5 min": times are in nanoseconds.
func quantity(t *testing.T, cell string) float64 {
	t.Helper()
	number, unit, _ := strings.Cut(cell, " ")
	n, err := strconv.ParseFloat(number, 64)
	require.NoError(t, err, cell)
	require.Contains(t, units, unit, cell)
	return n * units[unit]
}

// codeValue is the value of a constant like isolates.maxTimers, or of a field of a room's default
// configuration, like isolates.Config.MaxParked.
func codeValue(t *testing.T, name string) float64 {
	t.Helper()
	room, rest, _ := strings.Cut(name, ".")
	if field, ok := strings.CutPrefix(rest, "Config."); ok {
		config := map[string]any{"isolates": isolates.DefaultConfig(1), "consumer": consumer.DefaultConfig()}[room]
		v := reflect.ValueOf(config).FieldByName(field)
		require.True(t, v.IsValid() && v.CanInt(), name)
		return float64(v.Int())
	}
	v, ok := constants(t, room)[rest]
	require.True(t, ok, "there is no constant %s", name)
	n, ok := v.(float64)
	require.True(t, ok, "%s is no number", name)
	return n
}

// constants are the constants of a package: strings, and numbers as float64. What is computed in
// ways that the tables do not need is left out.
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
			n := map[string]time.Duration{"Millisecond": time.Millisecond, "Second": time.Second, "Minute": time.Minute, "Hour": time.Hour}[e.Sel.Name]
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

// generated compares the part of a page between the marker of that name and "end" with what it must
// be, or writes it when UPDATE_DOCS is set.
func generated(t *testing.T, page, name, want string) {
	t.Helper()
	text := read(t, page)
	begin := strings.Index(text, "<!-- "+name+":")
	require.GreaterOrEqual(t, begin, 0, "%s has no marker %s", page, name)
	begin += strings.Index(text[begin:], "-->") + len("-->\n")
	end := begin + strings.Index(text[begin:], "<!-- end -->")
	if os.Getenv("UPDATE_DOCS") != "" && text[begin:end] != want {
		require.NoError(t, os.WriteFile(page, []byte(text[:begin]+want+text[end:]), 0o644))
		return
	}
	require.Equal(t, want, text[begin:end], "%s: the table %s is old: UPDATE_DOCS=1 go test -run TestOperations . makes it anew", page, name)
}

func TestOperationsListsTheConfiguration(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| variable | default | meaning | allowed |\n|---|---|---|---|\n")
	for _, v := range cli.Variables() {
		fallback := "empty"
		if v.Default != "" {
			fallback = "`" + v.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, fallback, v.Meaning, v.Allowed)
	}
	b.WriteString("\n")
	generated(t, "docs/operations.md", "configuration", b.String())
}

// descriptions is a Registerer that keeps what collectors say of their metrics.
type descriptions struct{ list []string }

func (d *descriptions) Register(c prometheus.Collector) error {
	ch := make(chan *prometheus.Desc)
	go func() { c.Describe(ch); close(ch) }()
	for desc := range ch {
		d.list = append(d.list, desc.String())
	}
	return nil
}

func (d *descriptions) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		_ = d.Register(c)
	}
}

func (d *descriptions) Unregister(prometheus.Collector) bool { return false }

func TestOperationsListsTheMetrics(t *testing.T) {
	d := &descriptions{}
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	dispatcher, err := dispatch.New(dispatch.Config{Threads: 1}, zerolog.Nop(), d)
	require.NoError(t, err)
	cfg := consumer.DefaultConfig()
	cfg.Node = "test"
	_, err = consumer.New(cfg, nc, dispatcher, zerolog.Nop(), d)
	require.NoError(t, err)
	_, err = isolates.New(isolates.DefaultConfig(1), dispatcher, nil, d)
	require.NoError(t, err)
	_, err = deploy.Open(t.Context(), js, deploy.Config{Metrics: d})
	require.NoError(t, err)
	above := supervisor.DefaultConfig(1)
	above.Command, above.Output = func(int, string) supervisor.Command { return supervisor.Command{} }, func(int, []byte) {}
	above.Metrics = d
	s, err := supervisor.Open(above)
	require.NoError(t, err)
	defer s.Close()

	parts := regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]+)".* variableLabels: \{([^}]*)\}\}$`)
	lines := make([]string, 0, len(d.list))
	for _, desc := range d.list {
		m := parts.FindStringSubmatch(desc)
		require.NotNil(t, m, desc)
		require.True(t, strings.HasPrefix(m[1], "pinwheel_"), desc)
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |\n", m[1], strings.ReplaceAll(m[3], ",", ", "), m[2]))
	}
	slices.Sort(lines)
	generated(t, "docs/operations.md", "metrics", "\n| metric | labels | meaning |\n|---|---|---|\n"+strings.Join(lines, "")+"\n")
	page := read(t, "docs/operations.md")
	for _, m := range regexp.MustCompile("`(pinwheel_[a-z_]+)`").FindAllStringSubmatch(page, -1) {
		require.Contains(t, strings.Join(lines, ""), "`"+m[1]+"`", "docs/operations.md names a metric that does not exist")
	}
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

// Command lines in the pages are understood by the command as it is: --help stops them after the flags were read.
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
