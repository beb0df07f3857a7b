package compat_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// otherPaths are the paths that are answered in another way than by workerd, by the way to write them.
var otherPaths = func() map[string]string {
	const (
		auto, force, drop = "auto-trailing-slash ", "force-trailing-slash ", "drop-trailing-slash "
		once              = "it leads to the page at once; workerd leads to /index before, or has no redirect"
		two               = "the other page has this path; workerd has this one where its file is"
	)
	return map[string]string{
		auto + "/index/": once, force + "/index/": once, drop + "/index/": once,
		force + "/both.html": two, drop + "/both/index.html": two,
	}
}()

// TestPathsOfPages compares the four ways to write the path of a page with those of workerd, by miniflare.
func TestPathsOfPages(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	site := filepath.Join(t.TempDir(), "site")
	for _, file := range []string{"/index.html", "/file.html", "/folder/index.html", "/script.js", "/both.html",
		"/both/index.html", "/a b.html"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(site, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(site, file), []byte(file), 0o600))
	}
	paths, err := json.Marshal([]string{
		"/", "/index", "/index.html", "/index/", "/file", "/file.html", "/file/", "/file/index", "/file/index.html",
		"/folder", "/folder.html", "/folder/", "/folder/index",
		"/folder/index.html", "/script.js", "/script.js/", "/script", "/both", "/both/", "/both.html", "/both/index",
		"/both/index.html", "/FILE", "/nothing", "/nothing/",
		"/file?x=1", "/file/?x=1", "/a%20b", "/a%20b.html", "/%66ile", "//file", "//", "///file", "/file//",
		"/folder//", "//folder", "/folder//index", "//script.js", "/script%2ejs", "//nothing",
		"//%66ile.html?x=1", "/a//b",
	})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(dir, "assets.mjs"), site, string(paths))
	cmd.Dir, cmd.WaitDelay, cmd.Stderr = dir, time.Second, os.Stderr
	text, err := cmd.Output()
	require.NoError(t, err)
	theirs := map[string]string{}
	require.NoError(t, json.Unmarshal(text, &theirs))
	require.Len(t, theirs, 4*42)

	f := fleettest.Start(t, func(c *config.Config) { c.HTTPAddr, c.HTTPDomain = "127.0.0.1:0", "w.test" })
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout: time.Minute}
	for _, html := range []string{"auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none"} {
		manifest := fmt.Sprintf(`{"name": %q, "assets": {"directory": ".", "html": %q}}`, html, html)
		require.NoError(t, os.WriteFile(filepath.Join(site, "pinwheel.json"), []byte(manifest), 0o600))
		f.Deploy(t, site, "--owner", "npm")
	}
	for name, want := range theirs {
		var html, path string
		_, err := fmt.Sscan(name, &html, &path)
		require.NoError(t, err)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+f.HTTP+path, nil)
		require.NoError(t, err)
		r.Host = html + "--npm.w.test"
		resp, err := client.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		got := fmt.Sprint(resp.StatusCode, " ")
		if to := resp.Header.Get("Location"); to != "" {
			got += "> " + to
		} else if resp.StatusCode == 200 {
			got += string(body)
		}
		if why, ok := otherPaths[name]; ok {
			assert.NotEqual(t, want, got, "%s is the same now, and should differ: %s", name, why)
		} else {
			assert.Equal(t, want, got, name)
		}
	}
	for name := range otherPaths {
		require.Contains(t, theirs, name)
	}
}
