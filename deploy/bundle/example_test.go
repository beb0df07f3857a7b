package bundle_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
)

func ExampleParseManifest() {
	spec, err := bundle.ParseManifest("hello.pinwheel.json", []byte(`{"mode": "shared", "vars": {"GREETING": "hello"}}`))
	fmt.Println(spec.Mode, spec.Vars["GREETING"], err)
	_, err = bundle.ParseManifest("hello.pinwheel.json", []byte("{\n  \"limits\": {\"heapMB\": 4}\n}"))
	fmt.Println(err)
	// Output:
	// shared hello <nil>
	// hello.pinwheel.json:2:14: limits.heapMB is 4: it is 8 to 512
	//       "limits": {"heapMB": 4}
	//                  ^
}

func ExampleBuild() {
	b, err := bundle.Build(context.Background(), "testdata/hello.ts")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.File, b.Mode, len(b.Inputs), "files")

	_, err = bundle.Build(context.Background(), "testdata/syntax.js")
	var source *bundle.SourceError
	if errors.As(err, &source) {
		d := source.Diagnostics[0]
		fmt.Printf("%s:%d:%d: %s\n", d.File, d.Line, d.Column, d.Text)
	}
	// Output:
	// hello.js pinned 3 files
	// testdata/syntax.js:2:36: Expected ")" but found "oops"
}
