package bundle_test

import (
	"context"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

// secret is what no bundle and no message may have.
const secret = "xyzzy-plugh-SECRET"

// yard is a project with a secret beside it.
type yard struct {
	t   *testing.T
	dir string // of the project
}

func newYard(t *testing.T) yard {
	t.Helper()
	t.Setenv("PINWHEEL_TEST_SECRET", secret)
	dir := t.TempDir()
	write(t, dir+"/secret.js", "export default '"+secret+"';")
	write(t, dir+"/secret.json", `{"name": "`+secret+`", `+secret)
	write(t, dir+"/secret.txt", secret)
	write(t, dir+"/other/tsconfig.json", `{"compilerOptions": {"jsxFactory": "xyzzy_plugh_SECRET"}}`)
	write(t, dir+"/project/package.json", `{"name": "project"}`)
	return yard{t, dir + "/project"}
}

func (y yard) write(path, text string) {
	y.t.Helper()
	write(y.t, filepath.Join(y.dir, path), text)
}

func (y yard) link(target, path string) {
	y.t.Helper()
	path = filepath.Join(y.dir, path)
	require.NoError(y.t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(y.t, os.Symlink(target, path))
}

// refused builds the project's worker and wants it refused, with the secret neither in the bundle nor in the message.
func (y yard) refused(roots ...string) error {
	y.t.Helper()
	ctx, cancel := context.WithTimeout(y.t.Context(), patience)
	defer cancel()
	b, err := bundle.Build(ctx, y.dir+"/w.ts", roots...)
	require.Error(y.t, err)
	require.Nil(y.t, b)
	require.NotErrorIs(y.t, err, context.DeadlineExceeded)
	require.NotContains(y.t, strings.ToLower(err.Error()), "plugh")
	return err
}

// built builds it, and wants no secret in it.
func (y yard) built(roots ...string) *bundle.Bundle {
	y.t.Helper()
	b, err := bundle.Build(y.t.Context(), y.dir+"/w.ts", roots...)
	require.NoError(y.t, err)
	require.NotContains(y.t, strings.ToLower(b.Code+string(b.SourceMap)), "plugh")
	for _, w := range b.Warnings {
		require.NotContains(y.t, strings.ToLower(w.String()), "plugh")
	}
	return b
}

// Files outside of the project, or that are no files, neither get into a bundle nor into a message.
func TestBuildReadsNothingBeyondTheProject(t *testing.T) {
	const use = "; export default { task: () => x };"
	for name, set := range map[string]func(y yard){
		"environ": func(y yard) { y.write("w.ts", `import x from "/proc/self/environ" with {type: "text"}`+use) },
		"environ, relative": func(y yard) {
			y.write("w.ts", `import x from "`+strings.Repeat("../", 30)+`proc/self/environ" with {type: "text"}`+use)
		},
		"bytes":             func(y yard) { y.write("w.ts", `import x from "../secret.txt" with {type: "bytes"}`+use) },
		"code":              func(y yard) { y.write("w.ts", `import x from "../secret"`+use) },
		"by extension":      func(y yard) { y.write("w.ts", `import x from "../secret.txt"`+use) },
		"json with a fault": func(y yard) { y.write("w.ts", `import x from "../secret.json"`+use) },
		"require":           func(y yard) { y.write("w.ts", `const x = require("../secret.js")`+use) },
		"dynamic":           func(y yard) { y.write("w.ts", `const x = import("../secret.js")`+use) },
		"query":             func(y yard) { y.write("w.ts", `import x from "../secret.txt?raw"`+use) },
		"there and back":    func(y yard) { y.write("w.ts", `import x from "./a/../../secret.txt"`+use) },
		"file URL":          func(y yard) { y.write("w.ts", `import x from "file://`+filepath.Dir(y.dir)+`/secret.js"`+use) },
		"glob":              func(y yard) { y.write("w.ts", "const x = (n: string) => import(`../${n}.txt`)"+use) },
		"glob in pieces":    func(y yard) { y.write("w.ts", `const x = (n: string) => import("." + "./" + n + ".txt")`+use) },
		"glob of everything": func(y yard) {
			y.write("w.ts", "const x = (n: string) => require('./../../../../../../../../../../' + n)"+use)
		},
		"entry is a link":  func(y yard) { y.link("../secret.txt", "w.ts") },
		"entry is environ": func(y yard) { y.link("/proc/self/environ", "w.ts") },
		"link":             func(y yard) { y.link("../secret.txt", "x.txt"); y.write("w.ts", `import x from "./x.txt"`+use) },
		"link to environ": func(y yard) {
			y.link("/proc/self/environ", "x.txt")
			y.write("w.ts", `import x from "./x.txt"`+use)
		},
		"link of a directory": func(y yard) {
			y.link("/proc/self", "x")
			y.write("w.ts", `import x from "./x/environ" with {type: "text"}`+use)
		},
		"links in links": func(y yard) {
			y.link("..", "a")
			y.link("a/secret.txt", "b.txt")
			y.write("w.ts", `import x from "./b.txt"`+use)
		},
		"package is a link": func(y yard) {
			y.link("/proc/self", "node_modules/p")
			y.write("w.ts", `import x from "p/environ" with {type: "text"}`+use)
		},
		"package names a file": func(y yard) {
			y.write("node_modules/p/package.json", `{"main": "../../../secret.js"}`)
			y.write("w.ts", `import x from "p"`+use)
		},
		"imports of package.json": func(y yard) {
			y.link("../secret.txt", "x.txt")
			y.write("package.json", `{"imports": {"#x": "./x.txt"}}`)
			y.write("w.ts", `import x from "#x"`+use)
		},
		"paths": func(y yard) {
			y.write("tsconfig.json", `{"compilerOptions": {"paths": {"x": ["../secret.js"]}}}`)
			y.write("w.ts", `import x from "x"`+use)
		},
		"baseUrl": func(y yard) {
			y.write("tsconfig.json", `{"compilerOptions": {"baseUrl": "/proc"}}`)
			y.write("w.ts", `import x from "self/environ" with {type: "text"}`+use)
		},
		"extends": func(y yard) {
			y.write("tsconfig.json", `{"extends": "../secret.json"}`)
			y.write("w.ts", `const x = 1`+use)
		},
		"extends environ": func(y yard) {
			y.write("tsconfig.json", `{"extends": "/proc/self/environ"}`)
			y.write("w.ts", `const x = 1`+use)
		},
		"extends without end": func(y yard) {
			y.write("tsconfig.json", "{// \u2028 \"ex\\u0074ends\": [\"./a\", \"/dev/zero\"]}")
			y.write("w.ts", `const x = 1`+use)
		},
		"extends a link": func(y yard) {
			y.link("../secret.json", "base.json")
			y.write("tsconfig.json", `{"extends": "./base"}`)
			y.write("w.ts", `const x = 1`+use)
		},
		"extends, in the second step": func(y yard) {
			y.write("tsconfig.json", `{"extends": "./base"}`)
			y.write("base.json", `{"extends": "../other/tsconfig.json"}`)
			y.write("w.ts", `const x = 1`+use)
		},
		"extends of a package": func(y yard) {
			y.write("tsconfig.json", `{"extends": "p"}`)
			y.write("node_modules/p/package.json", `{"tsconfig": "../../../other/tsconfig.json"}`)
			y.write("w.ts", `const x = 1`+use)
		},
		"package.json is a link": func(y yard) {
			y.link("../../secret.json", "x/package.json")
			y.write("x/y.js", "export default 1")
			y.write("w.ts", `import x from "./x/y"`+use)
		},
		"package.json without end": func(y yard) {
			y.link("/dev/zero", "x/package.json")
			y.write("x/y.js", "export default 1")
			y.write("w.ts", `import x from "./x/y"`+use)
		},
		"package without end": func(y yard) {
			y.link("/dev/zero", "node_modules/p/package.json")
			y.write("w.ts", `import x from "p"`+use)
		},
		"tsconfig is a link": func(y yard) {
			y.link("/proc/self/environ", "tsconfig.json")
			y.write("w.ts", `const x = 1`+use)
		},
		"manifest is a link": func(y yard) {
			y.link("/proc/self/environ", "w.pinwheel.json")
			y.write("w.ts", `const x = 1`+use)
		},
		"device": func(y yard) { y.link("/dev/zero", "x.txt"); y.write("w.ts", `import x from "./x.txt"`+use) },
		"named pipe": func(y yard) {
			require.NoError(y.t, syscall.Mkfifo(y.dir+"/x.txt", 0o600))
			y.write("w.ts", `import x from "./x.txt"`+use)
		},
		"large": func(y yard) {
			y.write("x.txt", "")
			require.NoError(y.t, os.Truncate(y.dir+"/x.txt", 33<<20))
			y.write("w.ts", `import x from "./x.txt"`+use)
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			set(y)
			t.Log(y.refused())
		})
	}
}

// A file of 100 MB is refused with its size, wherever it is, and is not read for that.
func TestBuildDoesNotReadLargeFiles(t *testing.T) { // no test runs beside it: it counts what is allocated
	dir := t.TempDir()
	write(t, filepath.Join(dir, "imports.js"), "import './large.js';\nexport default { task() {} };\n")
	write(t, filepath.Join(dir, "text.js"), "import page from './large.html';\nexport default { task: () => page };\n")
	write(t, filepath.Join(dir, "routes/pinwheel.json"), `{"fileRoutes": "api"}`)
	write(t, filepath.Join(dir, "node_modules/large/package.json"), `{"main": "index.js"}`)
	write(t, filepath.Join(dir, "package.js"), "import 'large';\nexport default { task() {} };\n")
	for _, name := range []string{"large.js", "large.html", "large/index.js", "routes/api/users.js",
		"node_modules/large/index.js"} {
		write(t, filepath.Join(dir, name), "")
		require.NoError(t, os.Truncate(filepath.Join(dir, name), 100<<20)) // without content: it takes no space
	}
	const why = "cannot be read: it has 104857600 bytes: at most 33554432 are read"
	for path, want := range map[string]string{
		"large.js":   dir + "/large.js: the source " + why,
		"large":      dir + "/large/index.js: the source " + why,
		"imports.js": dir + "/imports.js:1:8: import of a file that " + why,
		"text.js":    dir + "/text.js:1:18: import of a file that " + why,
		"package.js": dir + "/package.js:1:8: import of a file that " + why,
		"routes":     "import of a file that " + why,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := bundle.Build(t.Context(), filepath.Join(dir, path))
		runtime.ReadMemStats(&after)
		require.ErrorAs(t, err, new(*bundle.SourceError), path)
		require.ErrorContains(t, err, want)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(20<<20), path)
	}
}

// Source maps that files name are followed within the project only, and so are the sources that they name.
func TestBuildFollowsSourceMapsWithinTheProject(t *testing.T) {
	const mapping = `"version": 3, "names": [], "mappings": "AAAA"`
	inline := func(text string) string {
		return "data:application/json;base64," + base64.StdEncoding.EncodeToString([]byte(text))
	}
	for name, m := range map[string]string{
		"map outside":      "../secret.json",
		"map is environ":   "file:///proc/self/environ",
		"source":           inline(`{` + mapping + `, "sources": ["file:///proc/self/environ"]}`),
		"relative source":  inline(`{` + mapping + `, "sources": ["../secret.txt"], "sourcesContent": [null]}`),
		"root of sources":  inline(`{` + mapping + `, "sourceRoot": "..", "sources": ["secret.txt"]}`),
		"sections":         inline(`{"version": 3, "sections": [{"offset": {"line": 0, "column": 0}, "map": {` + mapping + `, "sources": ["../secret.txt"]}}]}`),
		"map in project":   "w.map",
		"linked map":       "link.map",
		"without end":      "file:///dev/zero",
		"source as a link": inline(`{` + mapping + `, "sources": ["link.txt"]}`),
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.write("w.map", `{`+mapping+`, "sources": ["../secret.txt", "/dev/zero"]}`)
			y.link("../secret.json", "link.map")
			y.link("../secret.txt", "link.txt")
			for _, comment := range []string{"//# ", "//@ ", "/*# "} {
				end := map[bool]string{true: " */"}[comment == "/*# "]
				y.write("w.ts", "export default { task() {} };\n"+comment+"sourceMappingURL="+m+end+"\n")
				y.built()
			}
		})
	}
	y := newYard(t)
	y.write("dist/w.js", "export default { task() { return 'mapped' } };\n//# sourceMappingURL=w.js.map")
	y.write("dist/w.js.map", `{`+mapping+`, "sources": ["../src/w.ts"]}`)
	y.write("src/w.ts", "the original")
	y.write("w.ts", `export { default } from "./dist/w.js"`)
	require.Contains(t, string(y.built().SourceMap), "the original")
}

// What projects are made of is read all the same.
// A source may be named as it is seen from where one is, and its manifest is found beside it.
func TestBuildOfARelativePath(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "src", "w.js"), `import x from "./x.txt"; export default { task: () => x };`)
	write(t, filepath.Join(dir, "src", "x.txt"), "here")
	write(t, filepath.Join(dir, "src", "w.pinwheel.json"), `{"vars": {"A": "b"}}`)
	for from, path := range map[string]string{"src": "w.js", ".": "src/w.js", "src/../src": "../src/w.js"} {
		t.Chdir(filepath.Join(dir, from))
		b, err := bundle.Build(t.Context(), path)
		require.NoError(t, err, path)
		require.Contains(t, b.Code, "here")
		require.Equal(t, map[string]string{"A": "b"}, b.Vars)
	}
}

func TestBuildReadsWhatProjectsHave(t *testing.T) {
	const use = "; export default { task: () => x };"
	for name, set := range map[string]func(y yard){
		"up to the root": func(y yard) {
			y.write("x.txt", "here")
			y.write("src/w.ts", `import x from "../x.txt"`+use)
			y.link("src/w.ts", "w.ts")
		},
		"store of pnpm": func(y yard) {
			y.write("node_modules/.pnpm/p@1/node_modules/p/index.js", "export default 'here'")
			y.link(".pnpm/p@1/node_modules/p", "node_modules/p")
			y.write("w.ts", `import x from "p"`+use)
		},
		"hoisted above": func(y yard) {
			y.write("../node_modules/p/index.js", "export default 'here'")
			y.write("w.ts", `import x from "p"`+use)
		},
		"store of pnpm above": func(y yard) {
			y.write("../node_modules/.pnpm/p@1/node_modules/p/index.js", "export default 'here'")
			y.link("../../node_modules/.pnpm/p@1/node_modules/p", "node_modules/p")
			y.write("w.ts", `import x from "p"`+use)
		},
		"workspaces of npm": func(y yard) {
			y.write("../package.json", `{"workspaces": ["*"]}`)
			y.write("../lib/index.ts", "export default 'here'")
			y.link("../lib", "../node_modules/lib")
			y.write("w.ts", `import x from "lib"`+use)
		},
		"workspaces of pnpm": func(y yard) {
			y.write("../pnpm-workspace.yaml", "packages: ['*']")
			y.write("../lib/index.ts", "export default 'here'")
			y.link("../../lib", "node_modules/lib")
			y.write("w.ts", `import x from "lib"`+use)
		},
		"extends a package": func(y yard) {
			y.write("node_modules/@tsconfig/p/tsconfig.json", `{"compilerOptions": {"paths": {"q": ["./here.ts"]}}}`)
			y.write("tsconfig.json", "{\n // a comment\n \"extends\": \"@tsconfig/p/tsconfig.json\", \"compilerOptions\": {\"baseUrl\": \".\", \"paths\": {\"q\": [\"here.ts\"]}},\n}")
			y.write("here.ts", "export default 'here'")
			y.write("w.ts", `import x from "q"`+use)
		},
		"data URL": func(y yard) { y.write("w.ts", `import x from "data:text/javascript,export default 'here'"`+use) },
		"json": func(y yard) {
			y.write("x.json", `["here"]`)
			y.write("w.ts", `import x from "./x.json" with {type: "json"}`+use)
		},
		"text": func(y yard) {
			y.write("x.js", `here`)
			y.write("w.ts", `import x from "./x.js" with {type: "text"}`+use)
		},
		"glob": func(y yard) {
			y.write("x/a.txt", "here")
			y.write("w.ts", "const x = (n: string) => import(`./x/${n}.txt`)"+use)
		},
		"socket of a tool": func(y yard) {
			require.NoError(y.t, syscall.Mknod(y.dir+"/tool.sock", syscall.S_IFSOCK|0o600, 0))
			y.write("w.ts", "const x = 'here'"+use)
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			set(y)
			require.Contains(t, y.built().Code, "here")
		})
	}
}

// Who deploys may say which directories are read, and then it is no others.
func TestBuildWithRoots(t *testing.T) {
	y := newYard(t)
	y.write("../lib/x.ts", "export default 'here'")
	y.write("w.ts", `import x from "../lib/x"; export default { task: () => x };`)
	require.ErrorContains(t, y.refused(), `import of "../lib/x": it is outside of the project, which is the directory . of the source: --root DIR names another directory`)
	require.Contains(t, y.built(y.dir, y.dir+"/../lib").Code, "here")
	require.ErrorContains(t, y.refused(y.dir), "outside of the project")
	require.ErrorContains(t, y.refused(y.dir+"/../lib"), "outside of the project", "the source itself")
	y.write("../node_modules/p/index.js", "export default 'here'")
	y.write("w.ts", `import x from "p"; export default { task: () => x };`)
	require.Contains(t, y.built().Code, "here")
	y.refused(y.dir)
	_, err := bundle.Build(t.Context(), y.dir+"/w.ts", y.dir+"/nowhere")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A source without a package.json has its directory.
func TestBuildWithoutAPackageReadsItsDirectory(t *testing.T) {
	y := newYard(t)
	require.NoError(t, os.Remove(y.dir+"/package.json"))
	y.write("sub/x.txt", "here")
	y.write("w.ts", `import x from "./sub/x.txt"; export default { task: () => x };`)
	require.Contains(t, y.built().Code, "here")
	y.write("w.ts", `import x from "../secret.txt"; export default { task: () => x };`)
	var se *bundle.SourceError
	require.True(t, errors.As(y.refused(), &se))
	require.Equal(t, 1, se.Diagnostics[0].Line)
}

// Who swaps a file or a directory while it is read gains nothing.
func TestBuildIsNotMisledByASwap(t *testing.T) {
	y := newYard(t)
	y.write("d/x.txt", "here")
	y.write("outside/x.txt", "here")
	y.link("../../secret.txt", "l/x.txt")
	y.write("w.ts", `import x from "./d/x.txt"; export default { task: () => x };`)
	ctx, cancel := context.WithCancel(t.Context())
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for ctx.Err() == nil {
			_ = os.Rename(y.dir+"/d", y.dir+"/e")
			_ = os.Rename(y.dir+"/l", y.dir+"/d")
			_ = os.Rename(y.dir+"/d", y.dir+"/l")
			_ = os.Rename(y.dir+"/e", y.dir+"/d")
		}
	})
	defer swapping.Wait()
	defer cancel()
	for range 200 {
		b, err := bundle.Build(t.Context(), y.dir+"/w.ts")
		if err != nil {
			require.NotContains(t, err.Error(), "plugh")
			continue
		}
		require.NotContains(t, b.Code+string(b.SourceMap), "plugh")
	}
}
