package main_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/consumer"
	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/dispatch"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/env/services"
	"github.com/pinwheel-run/pinwheel/internal/http/certificates"
	"github.com/pinwheel-run/pinwheel/internal/http/gateway"
	"github.com/pinwheel-run/pinwheel/internal/operate/audit"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/runs"
	"github.com/pinwheel-run/pinwheel/internal/operate/usage"
	"github.com/pinwheel-run/pinwheel/internal/process/cells"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/fleet"
	"github.com/pinwheel-run/pinwheel/internal/process/supervisor"
	"github.com/pinwheel-run/pinwheel/internal/process/telemetry"
	"github.com/pinwheel-run/pinwheel/internal/process/workerlease"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/isolates"
)

// section returns the part of a page between the marker with that name and "end", and its position.
func section(t *testing.T, page, name string) (text string, begin, end int) {
	t.Helper()
	text = read(t, page)
	begin = strings.Index(text, "<!-- "+name+":")
	require.GreaterOrEqual(t, begin, 0, "%s has no marker %s", page, name)
	begin += strings.Index(text[begin:], "-->") + len("-->\n")
	length := strings.Index(text[begin:], "<!-- end -->")
	require.GreaterOrEqual(t, length, 0, "%s: the marker %s has no end", page, name)
	return text, begin, begin + length
}

// generated compares a section of a page with the generated text. With UPDATE_DOCS set it writes the section.
func generated(t *testing.T, page, name, want string) {
	t.Helper()
	text, begin, end := section(t, page, name)
	if os.Getenv("UPDATE_DOCS") != "" && text[begin:end] != want {
		require.NoError(t, os.WriteFile(page, []byte(text[:begin]+want+text[end:]), 0o644))
		return
	}
	require.Equal(t, want, text[begin:end], "%s: the section %s is out of date: UPDATE_DOCS=1 go test -run TestReference . writes it", page, name)
}

// generatedTable does what generated does, for a table whose last column is written by hand. The rows and the other
// columns come from the code. A row with an empty last cell fails the test.
func generatedTable(t *testing.T, page, name string, head []string, body [][]string) {
	t.Helper()
	text, begin, end := section(t, page, name)
	written := map[string]string{}
	for _, row := range rows(text[begin:end], len(head)) {
		written[row[0]] = row[len(row)-1]
	}
	var b strings.Builder
	plain := strings.NewReplacer("<", "\\<")
	fmt.Fprintf(&b, "\n| %s |\n%s|\n", strings.Join(head, " | "), strings.Repeat("|---", len(head)))
	var missing []string
	for _, row := range body {
		require.Len(t, row, len(head)-1)
		if written[row[0]] == "" {
			missing = append(missing, row[0])
		}
		fmt.Fprintf(&b, "| %s | %s |\n", plain.Replace(strings.Join(row, " | ")), written[row[0]])
	}
	b.WriteString("\n")
	generated(t, page, name, b.String())
	require.Empty(t, missing, "%s: the last column of the table %s is empty: write it", page, name)
}

func TestReferenceConfiguration(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n| variable | default | meaning | allowed |\n|---|---|---|---|\n")
	var files []string
	for _, v := range config.Variables() {
		fallback := "empty"
		if v.Default != "" {
			fallback = "`" + v.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", v.Name, fallback, v.Meaning, v.Allowed)
		if v.File != "" {
			files = append(files, "- `"+v.File+"`")
		}
	}
	b.WriteString("\n")
	generated(t, "docs/reference/configuration.md", "configuration", b.String())
	generated(t, "docs/reference/configuration.md", "secretfiles", "\n"+strings.Join(files, "\n")+"\n\n")
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

func TestReferenceMetrics(t *testing.T) {
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
	_, err = cells.New(&isolates.Pool{}, cells.Config{}, dispatcher, nil, d)
	require.NoError(t, err)
	_, err = gateway.New(gateway.Config{}, gateway.Rooms{}, zerolog.Nop(), d)
	require.NoError(t, err)
	_, err = bindings.New(nc, js, bindings.Config{}, d)
	require.NoError(t, err)
	_, err = services.New(dispatcher, d)
	require.NoError(t, err)
	_, err = telemetry.NewOwners(nil, d)
	require.NoError(t, err)
	_, err = certificates.Open(t.Context(), js, certificates.Config{}, nil, zerolog.Nop(), d)
	require.NoError(t, err)
	_, err = runs.Open(t.Context(), runs.Config{Prefix: "p", Rule: "all"}, runs.Parts{NC: nc, JS: js, Metrics: d})
	require.NoError(t, err)
	_, err = deploy.Open(t.Context(), js, deploy.Config{Metrics: d})
	require.NoError(t, err)
	control.RegisterMetrics(d)
	require.NoError(t, fleet.RegisterMetrics(d, nil))
	require.NoError(t, fleet.RegisterConfined(false, nil, d))
	above := supervisor.DefaultConfig(1)
	above.Command, above.Output = func(int, string) supervisor.Command { return supervisor.Command{} }, func(int,
		[]byte) {
	}
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
	generated(t, "docs/reference/metrics.md", "metrics", "\n| metric | labels | meaning |\n|---|---|---|\n"+strings.Join(lines, "")+
		"\n")
	named := regexp.MustCompile("`(pinwheel_[a-z_]+)`")
	for _, p := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(read(t, p), -1) {
			require.Contains(t, strings.Join(lines, ""), "`"+m[1]+"`", "%s names a metric that does not exist", p)
		}
	}
}

// Every stream, bucket and object store of a fleet, as the code creates it.
func TestReferenceJetStream(t *testing.T) {
	var list [][]string
	size := func(n int64) string {
		if n <= 0 {
			return "no limit"
		}
		return cmp.Or(map[bool]string{true: fmt.Sprintf("%d GiB", n>>30)}[n%(1<<30) == 0], fmt.Sprintf("%d MiB", n>>20))
	}
	age := func(d time.Duration) string {
		if d <= 0 {
			return "no limit"
		}
		if d < time.Minute {
			return fmt.Sprintf("%g seconds", d.Seconds())
		}
		return cmp.Or(map[bool]string{true: fmt.Sprintf("%d days", d/24/time.Hour)}[d%(24*time.Hour) == 0 &&
			d > 24*time.Hour], fmt.Sprintf("%g hours", d.Hours()))
	}
	consumers := map[string][]string{}
	all := slices.Concat(consumer.Assets(consumer.DefaultConfig(), 1<<20), deploy.Resources(deploy.Config{}),
		audit.Resources(audit.Config{Prefix: events.DefaultPrefix, MaxBytes: consumer.DefaultConfig().MaxBytes}),
		runs.Resources(runs.Config{Prefix: events.DefaultPrefix, MaxBytes: int64(config.Default().RunsBytes),
			MaxAge: config.Default().RunsAge}),
		usage.Resources(usage.Config{MaxBytes: consumer.DefaultConfig().MaxBytes}),
		workerlease.Resources(workerlease.Config{Prefix: events.DefaultPrefix}), certificates.Resources(1))
	for _, a := range all {
		if a.Consumer != nil {
			consumers[a.Of] = append(consumers[a.Of], a.Consumer.Durable)
		}
	}
	for _, a := range all {
		switch {
		case a.Stream != nil:
			kind := "stream"
			if a.Stream.Retention == jetstream.WorkQueuePolicy {
				kind = "stream, work queue"
			}
			if c := consumers[a.Stream.Name]; len(c) > 0 {
				kind += fmt.Sprintf("; %d consumers `%s` to `%s`", len(c), c[0], c[len(c)-1])
				if len(c) == 1 {
					kind = strings.Replace(kind, fmt.Sprintf("1 consumers `%s` to ", c[0]), "consumer ", 1)
				}
			}
			kept := age(a.Stream.MaxAge)
			if a.Stream.Retention == jetstream.WorkQueuePolicy {
				kept = "until handled"
			}
			list = append(list, []string{"`" + a.Stream.Name + "`", kind, a.Stream.Description, kept, size(a.Stream.MaxBytes)})
		case a.Bucket != nil:
			kind := "KV bucket, 1 value of each key"
			if n := a.Bucket.History; n > 1 {
				kind = fmt.Sprintf("KV bucket, %d values of each key", n)
			}
			list = append(list, []string{"`" + a.Bucket.Bucket + "`", kind, a.Bucket.Description, age(a.Bucket.TTL),
				size(a.Bucket.MaxBytes)})
		case a.Objects != nil:
			list = append(list, []string{"`" + a.Objects.Bucket + "`", "object store", a.Objects.Description, age(a.Objects.TTL),
				size(a.Objects.MaxBytes)})
		}
	}
	require.Len(t, list, 22)
	generatedTable(t, "docs/reference/jetstream.md", "jetstream", []string{"name", "kind", "holds", "kept", "size",
		"settings and notes"}, list)
}

// refusal returns the parser's error for a manifest.
func refusal(t *testing.T, manifest string) string {
	t.Helper()
	_, err := bundle.ParseManifest("m.json", []byte(manifest))
	require.Error(t, err, manifest)
	return err.Error()
}

var mayHave = regexp.MustCompile(`unknown (?:key|field) "[^"]*": .* may have ([$A-Za-z0-9, ]+)`)

// The keys of a manifest are those that the parser names when it refuses an unknown key.
func TestReferenceManifest(t *testing.T) {
	var list [][]string
	var walk func(path, open, end string)
	walk = func(path, open, end string) {
		m := mayHave.FindStringSubmatch(refusal(t, open+`{"?":null}`+end))
		require.NotNil(t, m, path)
		for _, key := range strings.Split(m[1], ", ") {
			full := strings.TrimPrefix(path+"."+key, ".")
			begin, tail := open+`{"`+key+`":`, "}"+end
			text := refusal(t, begin+`{"?":null}`+tail)
			_, wants, _ := strings.Cut(text, ": it is ")
			wants, _, _ = strings.Cut(wants, ";")
			wants, _, _ = strings.Cut(wants, "\n") // the error continues with the line of the manifest
			switch {
			case mayHave.MatchString(text):
				list = append(list, []string{"`" + full + "`", "an object"})
				walk(full, begin, tail)
			case strings.Contains(text, full+".? is not an object in braces"):
				list = append(list, []string{"`" + full + ".NAME`", "an object"})
				walk(full+".NAME", begin+`{"NAME":`, "}"+tail)
			case strings.Contains(text, full+".? is null"):
				list = append(list, []string{"`" + full + ".NAME`", wants})
			case wants != "":
				list = append(list, []string{"`" + full + "`", wants})
			default:
				require.Contains(t, text, "list in brackets", full)
				text = refusal(t, begin+`[{"?":0}]`+tail)
				if mayHave.MatchString(text) {
					list = append(list, []string{"`" + full + "[]`", "an object"})
					walk(full+"[]", begin+"[", "]"+tail)
					break
				}
				_, wants, _ = strings.Cut(text, ": it is ")
				wants, _, _ = strings.Cut(wants, "\n")
				list = append(list, []string{"`" + full + "[]`", wants})
			}
		}
	}
	walk("", "", "")
	require.Greater(t, len(list), 30)
	generatedTable(t, "docs/reference/manifest.md", "manifest", []string{"key", "value", "meaning"}, list)
}

// help returns the output of a command with --help.
func help(t *testing.T, command []string) string {
	t.Helper()
	var out strings.Builder
	require.Zero(t, cli.Main(append(slices.Clone(command), "--help"), strings.NewReader(""), &out, &out), out.String())
	return out.String()
}

func TestReferenceCommands(t *testing.T) {
	var b strings.Builder
	var walk func(command []string)
	walk = func(command []string) {
		text := help(t, command)
		fmt.Fprintf(&b, "\n### %s\n\n```text\n%s\n```\n", strings.Join(append([]string{"pinwheel"}, command...), " "),
			strings.TrimSpace(text))
		_, list, _ := strings.Cut(text, "Available Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for line := range strings.Lines(list) {
			if name := strings.Fields(line); len(name) > 0 && name[0] != "help" {
				walk(append(slices.Clone(command), name[0]))
			}
		}
	}
	walk(nil)
	require.Greater(t, strings.Count(b.String(), "###"), 25)
	b.WriteString("\n")
	generated(t, "docs/reference/cli.md", "commands", b.String())
}

// The endpoints are those that a running process reports. Their fields are those that it names when it refuses an
// unknown field.
func referenceControl(t *testing.T, nc *nats.Conn, token string) {
	reply, err := nc.Request("$SRV.INFO.pinwheel", nil, 10*time.Second)
	require.NoError(t, err)
	var info micro.Info
	require.NoError(t, json.Unmarshal(reply.Data, &info))
	var list [][]string
	tenants := map[string]bool{}
	for _, e := range info.Endpoints {
		if _, name, ok := strings.Cut(e.Subject, ".owner.*."); ok {
			tenants[name] = true
		}
	}
	for _, e := range info.Endpoints {
		_, name, ok := strings.Cut(e.Subject, ".control.")
		if !ok || strings.HasPrefix(name, "job.") { // each job's own subject is only between processes
			continue
		}
		m := nats.NewMsg(e.Subject)
		m.Header.Set("Authorization", "Bearer "+token)
		m.Data = []byte(`{"?":0}`)
		answer, err := nc.RequestMsg(m, 10*time.Second)
		require.NoError(t, err, e.Subject)
		fields := "none"
		if known := mayHave.FindStringSubmatch(answer.Header.Get(micro.ErrorHeader)); known != nil {
			fields = "`" + strings.ReplaceAll(known[1], ", ", "`, `") + "`"
		}
		guarded, each := "no", "any one process"
		if e.Metadata["guarded"] == "true" {
			guarded = "yes"
		}
		if e.QueueGroup == "" {
			each = "each process"
		}
		tenant := map[bool]string{true: "yes", false: "no"}[tenants[name]]
		list = append(list, []string{"`" + name + "`", e.Metadata["description"], fields, each, guarded, tenant})
	}
	require.Greater(t, len(list), 20)
	generatedTable(t, "docs/reference/control.md", "endpoints", []string{"name", "what it does", "fields of the request",
		"answered by", "guarded", "owner API", "answer"}, list)
}

// The states of an event in flight are drawn from the table of transitions.
func TestReferenceStates(t *testing.T) {
	var b strings.Builder
	b.WriteString("\n```mermaid\nstateDiagram-v2\n")
	ended, begun := map[string]bool{}, map[string]bool{}
	for _, f := range goFiles(t) {
		if f.path != "consumer/deliver.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && len(call.Args) == 2 {
				if of, ok := call.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "begin" {
					begun[fmt.Sprint(call.Args[0])] = true
				}
			}
			return true
		})
	}
	for _, first := range slices.Sorted(maps.Keys(begun)) {
		fmt.Fprintf(&b, "  [*] --> %s\n", first)
	}
	for _, f := range goFiles(t) {
		if f.path != "consumer/inflight.go" {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Name != "transitions" {
				return true
			}
			for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
				from := e.(*ast.KeyValueExpr)
				for _, to := range from.Value.(*ast.CompositeLit).Elts {
					fmt.Fprintf(&b, "  %s --> %s\n", from.Key, to)
					ended[fmt.Sprint(to)] = true
				}
			}
			return false
		})
	}
	require.True(t, ended["gone"] && ended["orphaned"] && begun["checking"], "consumer/inflight.go has no table of transitions, or consumer/deliver.go no first states")
	b.WriteString("  gone --> [*]\n  orphaned --> [*]\n```\n\n")
	generated(t, "docs/event-lifecycle.md", "states", b.String())
}

// The page of handlers has every member that the declarations give a handler, its arguments and its queues.
func TestReferenceHandlers(t *testing.T) {
	page, types := read(t, "docs/reference/handlers.md"), read(t, "deploy/bundle/types/runtime.d.ts")
	member := regexp.MustCompile(`^  (?:readonly )?([a-zA-Z]+)\??(?:\(|:)`)
	n := 0
	for _, name := range []string{"Handler", "ExecutionContext", "EventInfo", "TaskEvent", "ScheduledEvent",
		"MessageBatch", "Message<", "BatchFailures", "Result", "Queue", "QueueSendOptions", "Fetcher", "ExtendableEvent"} {
		_, body, ok := strings.Cut(types, "\ninterface "+name)
		require.True(t, ok, name)
		body, _, _ = strings.Cut(body, "\n}")
		for line := range strings.Lines(body) {
			if m := member.FindStringSubmatch(line); m != nil {
				n++
				require.Regexp(t, "`[^`]*\\b"+m[1]+"\\b[^`]*`", page, "docs/reference/handlers.md does not name %s of %s", m[1], name)
			}
		}
	}
	require.Greater(t, n, 25)
}

// anchors returns the headings of a page in the form that links use.
func anchors(text string) map[string]bool {
	list := map[string]bool{}
	drop := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") && !code {
			name := strings.ReplaceAll(strings.ToLower(drop.ReplaceAllString(strings.TrimSpace(title), "")), " ", "-")
			list[name] = true
		}
	}
	return list
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:\s]*)(#[^)]*)?\)`)
	for _, p := range append(pages(t), "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/clients/README.md") {
		dir := p[:strings.LastIndex("/"+p, "/")]
		for _, m := range link.FindAllStringSubmatch(read(t, p), -1) {
			to := p
			if m[1] != "" {
				to = strings.TrimPrefix(dir+"/"+m[1], "/")
			}
			_, err := os.Stat(to)
			require.NoError(t, err, "%s links to %s", p, m[1])
			if m[2] != "" && strings.HasSuffix(to, ".md") {
				require.True(t, anchors(read(t, to))[m[2][1:]], "%s links to %s%s, which is no heading there", p, m[1], m[2])
			}
		}
	}
}

// The answers of "Where is …?" exist: rooms, files in them, and what is declared there (file:name).
func TestArchitectureNamesWhatExists(t *testing.T) {
	page := read(t, "docs/development/architecture.md")
	_, where, ok := strings.Cut(page, "## Where is …?")
	require.True(t, ok)
	n, lines := 0, 0
	for _, row := range rows(where, 2) {
		for _, m := range ticked.FindAllStringSubmatch(row[1], -1) {
			room, _, _ := strings.Cut(m[1], "/")
			if _, known := house[room]; !known && room != "internal" {
				continue // a function or a type
			}
			n++
			file, symbol, named := strings.Cut(m[1], ":")
			_, err := os.Stat(file)
			require.NoError(t, err, "docs/development/architecture.md: %s", row[0])
			if named {
				lines++
				require.Contains(t, declared(t, file), symbol, "docs/development/architecture.md: %s", row[0])
			}
		}
	}
	require.Greater(t, n, 25)
	require.GreaterOrEqual(t, lines, 20)
	for name := range house {
		if name != "" && !strings.HasPrefix(name, "examples/") {
			named, err := regexp.MatchString("`([a-z0-9/]*/)?"+path.Base(name)+"`", page)
			require.NoError(t, err)
			require.True(t, named, "docs/development/architecture.md does not name the room %s", name)
		}
	}
}

// declared lists the functions, methods (Type.name) and types that a file declares.
func declared(t *testing.T, file string) (list []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				of := d.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if of, ok := of.(*ast.Ident); ok {
					name = of.Name + "." + name
				}
			}
			list = append(list, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.TypeSpec); ok {
					list = append(list, s.Name.Name)
				}
			}
		}
	}
	return list
}

// The index lists every page. The decisions are listed in their own index.
func TestIndexListsEveryPage(t *testing.T) {
	for _, p := range pages(t) {
		index, name := "docs/README.md", strings.TrimPrefix(p, "docs/")
		if dir := "docs/development/adr/"; strings.HasPrefix(p, dir) && p != dir+"README.md" {
			index, name = dir+"README.md", strings.TrimPrefix(p, dir)
		}
		if p != index {
			require.Contains(t, read(t, index), "]("+name+")", "%s does not list %s", index, p)
		}
	}
}
