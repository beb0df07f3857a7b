package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// printNotes prints the notes of a release: the section of the version in CHANGELOG.md. A version that leads to another
// one, as v1.0.0-rc.1, has those of what is not released.
func printNotes(ctx context.Context, version string) error {
	repo, err := output(ctx, ".", nil, "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile(filepath.Join(repo, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := releaseNotes(string(changelog), version)
	fmt.Println(text)
	return err
}

func releaseNotes(changelog, version string) (string, error) {
	title := "## [" + strings.TrimPrefix(version, "v") + "]"
	if strings.Contains(version, "-") {
		title = "## [Unreleased]"
	}
	_, after, found := strings.Cut("\n"+changelog, "\n"+title)
	_, text, _ := strings.Cut(after, "\n") // the rest of the title is the date
	text, _, _ = strings.Cut(text, "\n## ")
	if text = strings.TrimSpace(text); !found || text == "" {
		return "", fmt.Errorf("CHANGELOG.md has no section %s", title)
	}
	return text, nil
}
