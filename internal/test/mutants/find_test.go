//go:build mutants

package mutants_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is a check that a test binary can take out.
type mutant struct {
	room string // the directory of its package
	name string // file, function and text
}

// finder finds the checks of a file, and makes each of them one that can be taken out.
type finder struct {
	room, file, function string
	text                 []byte
	base                 int
	mutants              *[]mutant
	before, behind       map[int][]string // what is inserted, by offset
}

// instrument returns the text of a file with its checks made so, and appends them to mutants. only is the function that
// has them; "" = all have.
func instrument(t *testing.T, room, path, only string, mutants *[]mutant) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	f := &finder{room: room, file: filepath.Base(path), text: text, base: set.File(parsed.Pos()).Base(),
		mutants: mutants, before: map[int][]string{}, behind: map[int][]string{}}
	for _, d := range parsed.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && (only == "" || only == function.Name.Name) {
			f.function = function.Name.Name
			ast.Inspect(function.Body, f.visit)
		}
	}
	var changed bytes.Buffer
	for at, b := range append(text, 0) {
		for _, s := range slices.Backward(f.behind[at]) { // the inner one is closed first
			changed.WriteString(s)
		}
		for _, s := range f.before[at] {
			changed.WriteString(s)
		}
		if at < len(text) {
			changed.WriteByte(b)
		}
	}
	return changed.Bytes()
}

// visit finds the checks of a node.
func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		if refuses(n.Body.List) {
			f.condition(n.Cond)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			f.cases(n.Body.List)
		}
	case *ast.CallExpr:
		f.bounds(n)
	}
	return true
}

func (f *finder) cases(list []ast.Stmt) {
	for _, s := range list {
		c := s.(*ast.CaseClause)
		if len(c.List) == 1 && refuses(c.Body) {
			f.condition(c.List[0])
		}
	}
}

// condition makes each alternative of a condition one that can be taken out.
func (f *finder) condition(e ast.Expr) {
	switch x := e.(type) {
	case *ast.ParenExpr:
		f.condition(x.X)
		return
	case *ast.BinaryExpr:
		if x.Op == token.LOR {
			f.condition(x.X)
			f.condition(x.Y)
			return
		}
		if p, ok := x.Y.(*ast.ParenExpr); ok && x.Op == token.LAND { // a && (b || c)
			if or, ok := p.X.(*ast.BinaryExpr); ok && or.Op == token.LOR {
				f.condition(or)
				return
			}
		}
	}
	f.wrap(e, fmt.Sprintf("(mutantsOn(%d) && (", f.add(e, "")), "))")
}

// bounds makes the bounds of a number that is read or clamped ones that can be taken out.
func (f *finder) bounds(c *ast.CallExpr) {
	name, of := "", ""
	switch x := c.Fun.(type) {
	case *ast.Ident:
		name = x.Name
	case *ast.SelectorExpr:
		name = x.Sel.Name
		if p, ok := x.X.(*ast.Ident); ok {
			of = p.Name
		}
	}
	arg := func(i int, with, of, what string) {
		if text := f.source(c.Args[i]); text == "math.MaxInt64" || text == "math.MinInt64" {
			return // no bound
		}
		f.wrap(c.Args[i], fmt.Sprintf("mutants%s(%d, %s, ", with, f.add(c, what), of), ")")
	}
	switch {
	case name == "Number" && len(c.Args) == 2:
		arg(0, "Least", "int64(0)", ", the lower bound")
		arg(1, "Most", "int64(0)", ", the upper bound")
	case name == "Duration" && of == "r":
		arg(0, "Most", "time.Duration(0)", ", the bound")
	case name == "count" && len(c.Args) == 1:
		arg(0, "Most", f.like(c.Args[0]), ", the bound")
	case name == "readFlags":
		arg(1, "Most", "uint64(0)", ", the flags")
	case name == "min" && len(c.Args) == 2:
		arg(0, "Most", f.like(c.Args[1]), ", the first")
		arg(1, "Most", f.like(c.Args[0]), ", the second")
	case name == "max" && len(c.Args) == 2:
		arg(0, "Least", f.like(c.Args[1]), ", the first")
		arg(1, "Least", f.like(c.Args[0]), ", the second")
	}
}

func (f *finder) at(p token.Pos) int { return int(p) - f.base }

func (f *finder) source(e ast.Expr) string { return string(f.text[f.at(e.Pos()):f.at(e.End())]) }

// like is an expression of the type of e.
func (f *finder) like(e ast.Expr) string {
	text := f.source(e)
	if kind, _, ok := strings.Cut(text, "(r.Number("); ok { // which takes a number
		return kind + "(0)"
	}
	return text
}

// wrap inserts texts around an expression.
func (f *finder) wrap(e ast.Expr, before, behind string) {
	from, to := f.at(e.Pos()), f.at(e.End())
	f.before[from] = append(f.before[from], before)
	f.behind[to] = append(f.behind[to], behind)
}

// add adds a check, and returns its number.
func (f *finder) add(e ast.Expr, what string) int {
	text := strings.Join(strings.Fields(f.source(e)), " ")
	*f.mutants = append(*f.mutants, mutant{f.room, fmt.Sprintf("%s %s: %s%s", f.file, f.function, text, what)})
	return len(*f.mutants)
}

// refuses reports whether statements return something other than nil, or note an error.
func refuses(list []ast.Stmt) bool {
	return slices.ContainsFunc(list, func(s ast.Stmt) bool {
		switch s := s.(type) {
		case *ast.ReturnStmt:
			return slices.ContainsFunc(s.Results, func(r ast.Expr) bool {
				name, ok := r.(*ast.Ident)
				return !ok || name.Name != "nil"
			})
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); ok {
				x, ok := c.Fun.(*ast.SelectorExpr)
				return ok && (x.Sel.Name == "Fail" || x.Sel.Name == "fail")
			}
		}
		return false
	})
}

// switches is a file of each package: what the inserted calls do.
const switches = `package %s

import (
	"math"
	"os"
	"strconv"
)

type mutantsNumber interface {
	~int | ~int64 | ~uint32 | ~uint64
}

var mutantsOut, _ = strconv.Atoi(os.Getenv("MUTANT"))

func mutantsOn(n int) bool { return n != mutantsOut }

// mutantsMost is v, or the most that its type can have. of says which type that is.
func mutantsMost[T mutantsNumber](n int, of, v T) T {
	if mutantsOn(n) {
		return v
	}
	var most T
	if most--; most > 0 {
		return most
	}
	all := uint64(math.MaxInt64)
	return T(all)
}

func mutantsLeast[T mutantsNumber](n int, of, v T) T {
	if mutantsOn(n) {
		return v
	}
	least := of - of
	if least--; least > 0 {
		return 0
	}
	all := uint64(1) << 63
	return T(all)
}
`
