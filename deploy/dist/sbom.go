package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const home = "https://github.com/pinwheel-run/pinwheel"

// writeSBOM lists what is in the program, as CycloneDX. debs are packages that are in an image beside it.
func (s source) writeSBOM(name string, b *build, debs []deb) error {
	components := []cdx.Component{{
		BOMRef:     "pkg:golang/std@" + strings.TrimPrefix(b.info.GoVersion, "go"),
		Type:       cdx.ComponentTypeLibrary,
		Name:       "std",
		Version:    strings.TrimPrefix(b.info.GoVersion, "go"),
		PackageURL: "pkg:golang/std@" + strings.TrimPrefix(b.info.GoVersion, "go"),
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "BSD-3-Clause"}}},
	}}
	for _, n := range natives {
		components = append(components, n.component())
	}
	for _, d := range b.info.Deps {
		m := linked(d)
		purl := "pkg:golang/" + m.Path + "@" + m.Version
		c := cdx.Component{
			BOMRef:     purl,
			Type:       cdx.ComponentTypeLibrary,
			Name:       m.Path,
			Version:    m.Version,
			PackageURL: purl,
		}
		if d.Replace != nil {
			c.Properties = &[]cdx.Property{{Name: "pinwheel:replaces", Value: d.Path + " " + d.Version}}
		}
		if id := licenceID(noticesOf(b.notices, m.Path+" "+m.Version)); id != "" {
			c.Licenses = &cdx.Licenses{{License: &cdx.License{ID: id}}}
		}
		components = append(components, c)
	}
	for _, d := range debs {
		components = append(components, d.component())
	}
	bom := cdx.NewBOM()
	program, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	self := s.component(b, program)
	bom.Metadata = &cdx.Metadata{Timestamp: s.time.Format(time.RFC3339), Component: &self}
	bom.Components = &components
	// It is flat: the program has all of it, and which module wants which one is go.mod's.
	refs := make([]string, len(components))
	for i, c := range components {
		refs[i] = c.BOMRef
	}
	bom.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
	var text bytes.Buffer
	if err := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(name, text.Bytes(), 0o644)
}

// component is the program itself.
func (s source) component(b *build, program []byte) cdx.Component {
	return cdx.Component{
		BOMRef:     "pkg:golang/" + b.info.Main.Path + "@" + b.version(),
		Type:       cdx.ComponentTypeApplication,
		Name:       "pinwheel",
		Version:    b.version(),
		PackageURL: "pkg:golang/" + b.info.Main.Path + "@" + b.version() + "?goarch=" + b.arch + "&goos=linux",
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(program))}},
		ExternalReferences: &[]cdx.ExternalReference{{
			Type: cdx.ERTypeVCS,
			URL:  home + "/tree/" + s.commit,
		}},
	}
}

func (n native) component() cdx.Component {
	c := cdx.Component{
		BOMRef:     n.purl,
		Type:       cdx.ComponentTypeLibrary,
		Name:       n.name,
		Version:    n.version,
		PackageURL: n.purl,
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: n.licence}}},
	}
	if n.version != "" {
		c.PackageURL += "@" + n.version
	}
	if strings.Contains(n.licence, " WITH ") {
		c.Licenses = &cdx.Licenses{{Expression: n.licence}}
	}
	return c
}

func (d deb) component() cdx.Component {
	purl := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s", d.name, strings.ReplaceAll(d.version, "+", "%2B"), d.arch)
	return cdx.Component{
		BOMRef:     purl,
		Type:       cdx.ComponentTypeLibrary,
		Name:       d.name,
		Version:    d.version,
		PackageURL: purl,
	}
}

// noticesOf returns the section of a module.
func noticesOf(notices []byte, title string) string {
	for section := range strings.SplitSeq(string(notices), "\n"+strings.Repeat("=", 80)+"\n") {
		if first, rest, _ := strings.Cut(section, "\n"); first == title || strings.HasPrefix(first, title+" (") {
			return rest
		}
	}
	return ""
}
