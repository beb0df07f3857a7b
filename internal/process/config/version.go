package config

import (
	"runtime/debug"
	"strings"
	"time"
)

// linkedVersion, linkedRevision and linkedTime are set by the linker (-X) where there is no repository to read them
// from, as in deploy/Dockerfile.
var linkedVersion, linkedRevision, linkedTime string

// Version describes this build, as in "v1.2.3 0123456789ab of 2026-01-02 with changes go1.26.0".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return versionOf(info, linkedVersion, linkedRevision, linkedTime)
}

// versionOf returns the version of the module, the commit and its time, if the Go toolchain knows them. Otherwise it
// returns the linked values.
func versionOf(info *debug.BuildInfo, name, revision, at string) string {
	if v := info.Main.Version; v != "" && v != "(devel)" || name == "" {
		name = v
	}
	if name == "" {
		name = "(devel)"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if r := settings["vcs.revision"]; r != "" {
		revision, at = r, settings["vcs.time"]
	}
	words := []string{name}
	if short := revision[:min(12, len(revision))]; short != "" && !strings.Contains(name, short) {
		words = append(words, short)
		if t, err := time.Parse(time.RFC3339, at); err == nil {
			words = append(words, "of", t.UTC().Format(time.DateOnly))
		}
	}
	if settings["vcs.modified"] == "true" && !strings.HasSuffix(name, "+dirty") {
		words = append(words, "with changes")
	}
	return strings.Join(append(words, info.GoVersion), " ")
}
