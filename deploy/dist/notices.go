package main

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

// native is a library in C or C++ that is in the binary, and that no module names. v8go links the first ones as one
// archive without their licences, so that their texts are here.
type native struct {
	name, version, licence string
	file                   string // of licences
	purl                   string
}

var natives = []native{
	{
		name:    "V8",
		version: "13.6.233.10",
		licence: "BSD-3-Clause",
		file:    "v8.txt",
		purl:    "pkg:generic/v8",
	},
	{
		name:    "ICU",
		version: "74",
		licence: "Unicode-3.0",
		file:    "icu.txt",
		purl:    "pkg:generic/icu",
	},
	{
		name:    "Abseil",
		licence: "Apache-2.0",
		file:    "abseil.txt",
		purl:    "pkg:generic/abseil-cpp",
	},
	{
		name:    "Highway",
		licence: "BSD-3-Clause",
		file:    "highway.txt",
		purl:    "pkg:generic/highway",
	},
	{
		name:    "simdutf",
		licence: "MIT",
		file:    "simdutf.txt",
		purl:    "pkg:generic/simdutf",
	},
	{
		name:    "fast_float",
		licence: "MIT",
		file:    "fast_float.txt",
		purl:    "pkg:generic/fast_float",
	},
	{
		name:    "FP16",
		licence: "MIT",
		file:    "fp16.txt",
		purl:    "pkg:generic/fp16",
	},
	{
		name:    "zlib",
		licence: "Zlib",
		file:    "zlib.txt",
		purl:    "pkg:generic/zlib",
	},
	{
		name:    "inspector_protocol",
		licence: "BSD-3-Clause",
		file:    "inspector_protocol.txt",
		purl:    "pkg:generic/inspector_protocol",
	},
	{
		name:    "libstdc++ and libgcc",
		licence: "GPL-3.0-or-later WITH GCC-exception-3.1",
		file:    "gcc-runtime.txt",
		purl:    "pkg:generic/gcc-runtime",
	},
}

//go:embed licences
var licences embed.FS

// licenceName matches files that have a licence, or what a licence says must be kept.
var licenceName = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|notices?|copyright|patents)([-._].*)?$`)

// linked returns the module whose code is linked: the one that replaces m, if there is one.
func linked(m *debug.Module) *debug.Module {
	if m.Replace != nil {
		return m.Replace
	}
	return m
}

// notices returns the licences of all that is linked: Go, every module, and the libraries in C and C++.
func (s source) notices(ctx context.Context, b *build) ([]byte, error) {
	const format = `{{with .Module}}{{.Path}}{{"\t"}}{{.Dir}}{{end}}{{"\t"}}{{.Dir}}`
	listed, err := output(ctx, s.dir, environment(b.arch), "go", "list", "-deps", "-f", format, ".")
	if err != nil {
		return nil, err
	}
	found := map[string]map[string]string{} // by module: the text by the file's name in it
	for line := range strings.Lines(listed) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if len(cells) != 3 {
			continue // of the standard library
		}
		if found[cells[0]] == nil {
			found[cells[0]] = map[string]string{}
		}
		if err := collect(found[cells[0]], cells[1], cells[2]); err != nil {
			return nil, err
		}
	}
	goroot, err := output(ctx, s.dir, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	std := map[string]string{}
	if err := collect(std, goroot, goroot); err != nil {
		return nil, err
	}
	return writeNotices(b.info, std, found)
}

// collect adds the licences of a directory of a module, and of those above it. Code that a module took from elsewhere
// has its own.
func collect(texts map[string]string, root, dir string) error {
	for ; strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		files, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !f.Type().IsRegular() || !licenceName.MatchString(f.Name()) || filepath.Ext(f.Name()) == ".go" {
				continue
			}
			path := filepath.Join(dir, f.Name())
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			texts[name] = string(text)
		}
	}
	return nil
}

func writeNotices(info *debug.BuildInfo, std map[string]string, found map[string]map[string]string) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "Pinwheel %s contains the software below. Pinwheel's own licence is in LICENSE.\n", info.Main.Version)
	section := func(title string, texts map[string]string) error {
		if len(texts) == 0 {
			return fmt.Errorf("%s has no licence", title)
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", strings.Repeat("=", 80), title)
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			fmt.Fprintf(&b, "\n--- %s\n\n%s\n", name, strings.TrimSpace(strings.ReplaceAll(texts[name], "\r\n", "\n")))
		}
		return nil
	}
	if err := section("Go "+strings.TrimPrefix(info.GoVersion, "go"), std); err != nil {
		return nil, err
	}
	for _, n := range natives {
		text, err := fs.ReadFile(licences, "licences/"+n.file)
		if err != nil {
			return nil, err
		}
		title := strings.TrimSpace(n.name + " " + n.version)
		if err := section(title, map[string]string{n.licence: string(text)}); err != nil {
			return nil, err
		}
	}
	for _, m := range info.Deps {
		title := linked(m).Path + " " + linked(m).Version
		if m.Replace != nil {
			title += " (as " + m.Path + ")"
		}
		if err := section(title, found[m.Path]); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// licenceIDs are what texts of licences say, and their names in SPDX. The first that fits is it.
var licenceIDs = []struct {
	id   string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`Apache License\s+Version 2\.0`)},
	{"MPL-2.0", regexp.MustCompile(`Mozilla Public License,? [Vv]ersion 2\.0`)},
	{"BSD-3-Clause", regexp.MustCompile(`(?s)Redistribution and use in source.*(Neither the name|The names? of)`)},
	{"BSD-2-Clause", regexp.MustCompile(`(?s)Redistribution and use in source`)},
	{"MIT", regexp.MustCompile(`(?s)P(?i:ermission) is hereby granted, free of charge.*(above|this) copyright notice`)},
	{"ISC", regexp.MustCompile(`Permission to use, copy, modify,? and/or distribute this software for any`)},
	{"CC0-1.0", regexp.MustCompile(`CC0 1\.0 Universal`)},
	{"Unlicense", regexp.MustCompile(`This is free and unencumbered software released into the public domain`)},
}

// licenceID returns the name of a licence in SPDX, or "".
func licenceID(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, l := range licenceIDs {
		if l.text.MatchString(text) {
			return l.id
		}
	}
	return ""
}
