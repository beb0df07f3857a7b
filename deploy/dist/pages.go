package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// page is a text that the program writes about itself, with its place in the archive and in packages.
type page struct {
	archive string
	deb     string
	rpm     string
	text    []byte
}

// pages lets the program write the completions of shells and the manual pages. They are the same for all architectures.
func (s source) pages(ctx context.Context, b *build, dir string) ([]page, error) {
	list := []page{
		{
			archive: "completions/pinwheel.bash",
			deb:     "/usr/share/bash-completion/completions/pinwheel",
			rpm:     "/usr/share/bash-completion/completions/pinwheel",
		},
		{
			archive: "completions/_pinwheel",
			deb:     "/usr/share/zsh/vendor-completions/_pinwheel",
			rpm:     "/usr/share/zsh/site-functions/_pinwheel",
		},
		{
			archive: "completions/pinwheel.fish",
			deb:     "/usr/share/fish/vendor_completions.d/pinwheel.fish",
			rpm:     "/usr/share/fish/vendor_completions.d/pinwheel.fish",
		},
	}
	for i, shell := range []string{"bash", "zsh", "fish"} {
		text, err := outputBytes(ctx, s.dir, nil, b.path, "completion", shell)
		if err != nil {
			return nil, err
		}
		list[i].text = text
	}
	// Without a time zone the date is that of the builder.
	env := []string{"TZ=UTC", fmt.Sprintf("SOURCE_DATE_EPOCH=%d", s.time.Unix())}
	if _, err := output(ctx, s.dir, env, b.path, "man", dir); err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(name)
		installed := "/usr/share/man/man1/" + base + ".gz"
		list = append(list, page{
			archive: "man/man1/" + base,
			deb:     installed,
			rpm:     installed,
			text:    text,
		})
	}
	return list, nil
}
