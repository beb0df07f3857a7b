package config

import (
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionOfABuild(t *testing.T) {
	const commit, at = "0123456789abcdef0123456789abcdef01234567", "2026-01-02T03:04:05Z"
	build := func(version string, settings ...string) *debug.BuildInfo {
		info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: version}}
		for i := 0; i < len(settings); i += 2 {
			info.Settings = append(info.Settings, debug.BuildSetting{Key: settings[i], Value: settings[i+1]})
		}
		return info
	}
	for _, c := range []struct {
		info         *debug.BuildInfo
		linked, want string
	}{
		{build("(devel)"), "", "(devel) go1.26.0"},
		{build(""), "", "(devel) go1.26.0"},
		{build("v1.2.3"), "", "v1.2.3 go1.26.0"},
		{build("v1.2.3", "vcs.revision", commit, "vcs.time", at), "", "v1.2.3 0123456789ab of 2026-01-02 go1.26.0"},
		{build("v0.0.0-20260102030405-0123456789ab+dirty", "vcs.revision", commit, "vcs.time", at, "vcs.modified", "true"), "",
			"v0.0.0-20260102030405-0123456789ab+dirty go1.26.0"},
		{build("(devel)", "vcs.revision", commit, "vcs.time", at, "vcs.modified", "true"), "",
			"(devel) 0123456789ab of 2026-01-02 with changes go1.26.0"},
		{build("(devel)"), "v1.2.3", "v1.2.3 0123456789ab of 2026-01-02 go1.26.0"},
		{build("v1.2.4"), "v1.2.3", "v1.2.4 0123456789ab of 2026-01-02 go1.26.0"},
	} {
		revision, time := "", ""
		if c.linked != "" {
			revision, time = commit, at
		}
		require.Equal(t, c.want, versionOf(c.info, c.linked, revision, time))
	}
}

// The image states its content, to the binary and in its labels, and has nothing of apt.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile("../../../deploy/Dockerfile")
	require.NoError(t, err)
	page := strings.ReplaceAll(string(text), "\\\n", " ")
	build, final, ok := strings.Cut(page, "\nFROM debian:")
	require.True(t, ok)
	linked := map[string]bool{}
	for _, m := range regexp.MustCompile(`-X github.com/pinwheel-run/pinwheel/internal/process/config\.(\w+)=(\$\{\w+\})`).FindAllStringSubmatch(build, -1) {
		linked[m[1]+" "+m[2]] = true
	}
	source, err := os.ReadFile("version.go")
	require.NoError(t, err)
	require.Contains(t, string(source), "\nvar linkedVersion, linkedRevision, linkedTime string\n", "the linker says nothing of a name that is not there")
	require.Equal(t, map[string]bool{"linkedVersion ${VERSION}": true, "linkedRevision ${REVISION}": true,
		"linkedTime ${CREATED}": true}, linked)
	for name, value := range map[string]string{"version": "${VERSION}", "revision": "${REVISION}", "created": "${CREATED}",
		"source": "https://github.com/pinwheel-run/pinwheel", "licenses": "Apache-2.0"} {
		require.Contains(t, final, "org.opencontainers.image."+name+`="`+value+`"`)
	}
	for _, stage := range []string{build, final} {
		for _, arg := range []string{"VERSION", "REVISION", "CREATED"} {
			require.Regexp(t, `(?m)^ARG `+arg+`\b`, stage, "an ARG is known in its stage only")
		}
	}
	require.NotRegexp(t, `(?m)^RUN.*\bapt(-get)?\b`, final, "its caches would stay in the layer")
}
