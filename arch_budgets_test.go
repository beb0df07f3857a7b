package main_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// Budgets of CONTRIBUTING.md that cannot be met by moving code to another file. They do not apply to tests.
const (
	maxMethods = 45 // for a type: methods, and functions of its package whose first parameter it is
	maxFields  = 25 // for a struct
	maxFiles   = 30 // for a package
)

// allowance is an exception to a budget.
type allowance struct {
	most int
	why  string
	by   string // the month in which it goes; "" = it stays
}

// manyMethods are the types that may have more methods and functions: "package.Type".
var manyMethods = map[string]allowance{
	"events.Subjects": {64, "a short method for each subject and each stream name of the contract", ""},
}

// manyFields are the structs that may have more fields.
var manyFields = map[string]allowance{
	"events.LetterJSON":             {28, "the JSON of a letter, as users see it", ""},
	"events/workers.Policy":         {30, "the JSON of a policy, as operators write it", ""},
	"internal/operate/control.Flow": {26, "the JSON of what a process does", ""},
}

// manyFiles are the packages that may have more files.
var manyFiles = map[string]allowance{
	"internal/operate/control": {51, "a file for each group of endpoints", "2026-12"},
	"internal/operate/cli":     {48, "a file for each command, and for what it prints", "2026-12"},
}

// goes are the functions that may have a go statement: "file:function". Other goroutines belong to a group that their
// owner waits for (sync.WaitGroup.Go).
var goes = map[string]string{
	"events/client/live.go:start":                        "ends with the context of the call, which Close cancels",
	"internal/http/gateway/websocket.go:talk":            "a WebSocket, which ends with the context of all; Drain and Close wait for it",
	"internal/lib/resources/watch.go:StopWatch":          "reads the channel of a stopped watch to its end, which nats.go closes",
	"internal/process/confine/start.go:Start":            "an OS thread, which ends with the process that it has started",
	"internal/process/confine/start.go:Try":              "an OS thread, which ends when f has returned",
	"internal/process/confine/start.go:onThread":         "its caller waits for it",
	"internal/process/supervisor/process.go:start":       "waits for the child process; `ended` is closed when it has ended",
	"internal/process/supervisor/supervisor.go:any":      "one answer each into a buffered channel; they end with the context",
	"internal/test/fleettest/breach_linux.go:hearBreach": "tests: ends with the process",
	"internal/test/breach/breach_linux.go:inThread":      "tests: its caller waits for it",
	"internal/test/fleettest/fleettest.go:Start":         "tests: Stop waits for it",
	"internal/test/fleettest/process.go:launch":          "tests: Ended is closed when it has ended, and Kill waits for it",
	"internal/operate/cli/terminal/screen.go:Keys":       "reads the terminal until the command ends",
	"isolates/hostcalls/bindingcall.go:callBinding":      "a call of its run, paid for in its bytes, which ends when the run does",
	"isolates/hostcalls/part.go:pullPart":                "a call of its run, which ends when the run does",
	"isolates/hostcalls/pipe.go:Pipe":                    "a source of its run, which ends when the run does",
	"isolates/hostcalls/service.go:fetchService":         "a long response of a service, which ends when the run does",
	"isolates/hostcalls/fetch.go:begin":                  "a call of its run, at most MaxConcurrent each, which ends when the run does",
	"isolates/hostcalls/send.go:store":                   "a call of its run, paid for in its bytes, which ends when the run does",
	"isolates/offload/compression/decompressor.go:Step":  "Close ends it",
	"isolates/pool.go:Open":                              "Close waits for it",
	"isolates/loop.go:startThread":                       "a thread: Close waits for it, unless V8 does not let it go",
	"isolates/pool.go:waitAtMost":                        "waits for a group no longer than it is given: V8 may not let a thread go",
	"isolates/hostcalls/socket.go:open":                  "a call of its run, which ends when the run does",
	"isolates/hostcalls/line.go:startWriting":            "ends when nothing is to be written, or the connection is closed",
	"isolates/hostcalls/lookup.go:lookUp":                "a call of its run, which ends when the run does",
	"isolates/hostcalls/tcp.go:begin":                    "a connection of its run, which ends when the run does",
	"isolates/hostcalls/tcp_live.go:becomeSecure":        "converse waits for it",
	"loadtest/sources.go:measure":                        "its caller reads what it returns",
	"loadtest/machine/child.go:StartChild":               "waits for the child process; Done is closed when it has ended",
	"loadtest/drain.go:refill":                           "ends with the context; its caller reads what it sends",
	"loadtest/noisy.go:whileNoisy":                       "ends with the context; its caller reads what it sends",
	"loadtest/noisy.go:whilePurged":                      "ends with the command; its caller reads what it sends",
	"loadtest/machine/slowserver.go:OpenSlowServer":      "ends when the server is closed",
	"loadtest/publisher.go:newStreamer":                  "a call of an open loop; at most its rate times its timeout",
}

// A function whose first parameter is a type of its package works on that type as a method does.
func TestTypesHaveFewMethods(t *testing.T) {
	declared, methods := map[string]bool{}, map[string]int{}
	for _, f := range goFiles(t) {
		for _, d := range f.ast.Decls {
			if types, ok := d.(*ast.GenDecl); ok && types.Tok == token.TYPE {
				for _, spec := range types.Specs {
					declared[path.Dir(f.path)+"."+spec.(*ast.TypeSpec).Name.Name] = true
				}
			}
		}
	}
	for _, f := range goFiles(t) {
		if f.test() {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first := fn.Recv
			if first == nil {
				first = fn.Type.Params
			}
			if len(first.List) > 0 {
				if of := path.Dir(f.path) + "." + named(first.List[0].Type); declared[of] {
					methods[of]++
				}
			}
		}
	}
	keep(t, "methods and functions", methods, maxMethods, manyMethods)
}

func TestStructsHaveFewFields(t *testing.T) {
	fields := map[string]int{}
	for _, f := range goFiles(t) {
		if f.test() {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if of, ok := spec.Type.(*ast.StructType); ok && spec.Name.Name != "Config" {
					fields[path.Dir(f.path)+"."+spec.Name.Name] = of.Fields.NumFields()
				}
			}
			return true
		})
	}
	keep(t, "fields", fields, maxFields, manyFields)
}

// named returns the name of the type of a receiver or parameter, "" if it has none in its package.
func named(x ast.Expr) string {
	for {
		switch of := x.(type) {
		case *ast.StarExpr:
			x = of.X
		case *ast.IndexExpr: // a generic type
			x = of.X
		case *ast.IndexListExpr:
			x = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

func TestPackagesHaveFewFiles(t *testing.T) {
	files := map[string]int{}
	for _, f := range goFiles(t) {
		if !f.test() {
			files[path.Dir(f.path)]++
		}
	}
	keep(t, "files", files, maxFiles, manyFiles)
}

// keep fails for everything that exceeds its budget, and for an exception that is no longer needed.
func keep(t *testing.T, what string, have map[string]int, most int, exceptions map[string]allowance) {
	t.Helper()
	for name, n := range have {
		allowed := most
		if x, ok := exceptions[name]; ok {
			allowed = x.most
		}
		if n > allowed {
			t.Errorf("%s has %d %s: at most %d", name, n, what, allowed)
		}
	}
	for name, x := range exceptions {
		require.NotEmpty(t, x.why, name)
		if n := have[name]; n <= most {
			t.Errorf("%s has %d %s: remove the exception", name, n, what)
		}
	}
}

func TestGoroutinesAreTracked(t *testing.T) {
	found := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test() {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			name := f.path + ":" + fn.Name.Name
			ast.Inspect(fn, func(n ast.Node) bool {
				if s, ok := n.(*ast.GoStmt); ok {
					found[name] = true
					if goes[name] == "" {
						t.Errorf("%s:%d: a go statement in %s: use a group that its owner waits for, or add the reason to goes",
							f.path, f.line(s.Pos()), fn.Name.Name)
					}
				}
				return true
			})
		}
	}
	for name := range goes {
		if !found[name] {
			t.Errorf("goes has %s, which has no go statement", name)
		}
	}
}

// literalColumns is what a string literal counts in a line of code: a text that somebody reads or searches stays whole.
const literalColumns = 40

// aligned is the space by which gofmt aligns what stands in columns.
var aligned = regexp.MustCompile(`  +`)

// TestCodeLinesStayShort keeps lines of code within maxLine characters, aligned space aside. Lines of a raw string
// literal of several lines are data.
func TestCodeLinesStayShort(t *testing.T) {
	for _, f := range goFiles(t) {
		length := map[int]int{} // by line
		for i, line := range strings.Split(read(t, f.path), "\n") {
			if !strings.HasPrefix(line, "// #cgo") {
				length[i+1] = utf8.RuneCountInString(aligned.ReplaceAllString(line, " "))
			}
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			text, ok := n.(*ast.BasicLit)
			if !ok || text.Kind != token.STRING {
				return true
			}
			first, last := f.line(text.Pos()), f.line(text.End())
			if first == last {
				length[first] -= max(0, utf8.RuneCountInString(text.Value)-literalColumns)
			}
			for line := first; line <= last && first < last; line++ {
				length[line] = 0
			}
			return true
		})
		for line, n := range length {
			if n > maxLine {
				t.Errorf("%s:%d has %d columns of code: at most %d", f.path, line, n, maxLine)
			}
		}
	}
}
