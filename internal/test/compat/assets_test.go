package compat_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// ways are the ways to write the path of a page.
var ways = []string{"auto-trailing-slash", "force-trailing-slash", "drop-trailing-slash", "none"}

// pagePaths are asked for in each way.
var pagePaths = []string{
	"/", "/index", "/index.html", "/index/", "/file", "/file.html", "/file/", "/file/index", "/file/index.html",
	"/folder", "/folder.html", "/folder/", "/folder/index",
	"/folder/index.html", "/script.js", "/script.js/", "/script", "/both", "/both/", "/both.html", "/both/index",
	"/both/index.html", "/FILE", "/nothing", "/nothing/",
	"/file?x=1", "/file/?x=1", "/a%20b", "/a%20b.html", "/%66ile", "//file", "//", "///file", "/file//",
	"/folder//", "//folder", "/folder//index", "//script.js", "/script%2ejs", "//nothing",
	"//%66ile.html?x=1", "/a//b", "/%2Ffile", "/%2ffile", "/folder%2Findex", "/file%2F", "/%", "/%zz", "/file%00",
}

// ruleFiles are files with rules.
var ruleFiles = map[string]string{
	"/digits.txt": "0123456789", "/page.html": "<p>page", "/data.json": "{}", "/none": "x", "/pic.png": "pic",
	"/a b.txt": "a b", "/é.txt": "e",
	"/_headers": "/*\n  X-All: all\n/page\n  X-Page: page\n  ! X-All\n/data.json\n  Cache-Control: public, max-age=60\n" +
		"  X-Two: one\n  X-Two: two\n/old\n  X-Old: old\n",
	"/_redirects": "/old /page\n/moved /page 301\n/kept /page 307\n/perm /page 308\n/see /page 303\n/splat/* /dir/:splat 301\n" +
		"/user/:name /profiles/:name\n/out https://other.example/x\n/rewrite /page 200\n/with-query /page?a=b\n",
}

// fileRequests are requests for them: method, path, and perhaps a header and its value. ETAG is the one of the file.
var fileRequests = []string{
	`GET | /digits.txt`,
	`HEAD | /digits.txt`,
	`POST | /digits.txt`,
	`PUT | /nothing`,
	`OPTIONS | /digits.txt`,
	`DELETE | /old`,
	`GET | /page`,
	`GET | /page.html`,
	`GET | /data.json`,
	`GET | /none`,
	`GET | /pic.png`,
	`GET | /a%20b.txt`,
	`GET | /%C3%A9.txt`,
	`GET | /%66ile`,
	`GET | /%64igits.txt`,
	`GET | //digits.txt`,
	`GET | /%2Fdigits.txt`,
	`GET | /%2fdigits.txt`,
	`GET | /dir%2Fx`,
	`GET | /digits.txt%00`,
	`GET | /%`,
	`GET | /%zz`,
	`GET | /..%2fdigits.txt`,
	`GET | /digits.txt?x=1`,
	`GET | /nothing`,
	`GET | /digits.txt | if-none-match | ETAG`,
	`GET | /digits.txt | if-none-match | "other"`,
	`GET | /digits.txt | if-none-match | *`,
	`GET | /digits.txt | if-modified-since | Wed, 01 Jan 2020 00:00:00 GMT`,
	`GET | /digits.txt | if-match | "other"`,
	`GET | /digits.txt | range | bytes=2-4`,
	`GET | /digits.txt | range | bytes=5-`,
	`GET | /digits.txt | range | bytes=-3`,
	`GET | /digits.txt | range | bytes=0-99`,
	`GET | /digits.txt | range | bytes=20-`,
	`GET | /digits.txt | range | bytes=0-0,2-2`,
	`GET | /digits.txt | range | lines=1-2`,
	`HEAD | /digits.txt | range | bytes=2-4`,
	`GET | /old`,
	`GET | /moved`,
	`GET | /kept`,
	`GET | /perm`,
	`GET | /see`,
	`GET | /splat/a/b`,
	`GET | /splat/`,
	`GET | /user/ann`,
	`GET | /user/a%20b`,
	`GET | /out`,
	`GET | /rewrite`,
	`GET | /with-query`,
	`GET | /with-query?c=d`,
	`GET | /old?c=d`,
	`POST | /old`,
	`GET | /old/`,
	`GET | /_headers`,
	`GET | /_redirects`,
}

// comparedHeaders of files: others are the server's own.
var comparedHeaders = []string{"Location", "Content-Type", "Cache-Control", "X-All", "X-Page", "X-Two", "X-Old"}

// TestFiles compares what files answer with workerd, by miniflare.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := packages(t)
	pages := map[string]string{}
	for _, file := range []string{"/index.html", "/file.html", "/folder/index.html", "/script.js", "/both.html",
		"/both/index.html", "/a b.html"} {
		pages[file] = file
	}
	site, rules := writeSite(t, pages), writeSite(t, ruleFiles)
	theirs := filesOfWorkerd(t, dir, site, rules)

	f := fleettest.Start(t, func(c *config.Config) { c.HTTPAddr, c.HTTPDomain = "127.0.0.1:0", "w.test" })
	ours := map[string]any{}
	for _, html := range ways {
		deploySite(t, f, site, html, html)
		for _, path := range pagePaths {
			status, header, body := request(t, f, html, "GET", path, "", "")
			if to := header.Get("Location"); to != "" {
				body = "> " + to
			} else if status != http.StatusOK {
				body = ""
			}
			ours[html+" "+path] = []any{float64(status), body}
		}
	}
	deploySite(t, f, rules, "rules", ways[0])
	for _, line := range fileRequests {
		part := append(strings.Split(line, " | "), "", "")
		if part[3] == "ETAG" {
			_, header, _ := request(t, f, "rules", "GET", part[1], "", "")
			part[3] = header.Get("Etag")
		}
		status, header, body := request(t, f, "rules", part[0], part[1], part[2], part[3])
		ours[line] = fileAnswer(status, body, header.Get)
	}
	enoughCalls(t, compareCalls(t, "files", theirs, ours), 200)
}

// fileAnswer is what is compared of a response. Bodies of others than files are the server's own.
func fileAnswer(status int, body string, get func(string) string) []any {
	headers := map[string]string{}
	for _, name := range comparedHeaders {
		if value := get(name); value != "" && (status < 300 || name != "Content-Type" && name != "Cache-Control") {
			headers[name] = value
		}
	}
	if status >= 300 {
		body = ""
	}
	return []any{status, headers, get("Etag") != "", body}
}

// filesOfWorkerd returns what workerd answers, by the names of the calls.
func filesOfWorkerd(t *testing.T, dir, site, rules string) map[string]any {
	t.Helper()
	paths, err := json.Marshal(pagePaths)
	require.NoError(t, err)
	requests, err := json.Marshal(fileRequests)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", filepath.Join(dir, "assets.mjs"), site, string(paths), rules, string(requests))
	cmd.Dir, cmd.WaitDelay, cmd.Stderr = dir, time.Second, os.Stderr
	text, err := cmd.Output()
	require.NoError(t, err)
	var answers struct {
		Paths    map[string]any
		Requests map[string]struct {
			Status  int
			Headers map[string]string
			Body    string
		}
	}
	require.NoError(t, json.Unmarshal(text, &answers))
	for name, a := range answers.Requests {
		header := func(name string) string { return a.Headers[strings.ToLower(name)] }
		answers.Paths[name] = fileAnswer(a.Status, a.Body, header)
	}
	require.Len(t, answers.Paths, len(ways)*len(pagePaths)+len(fileRequests))
	return answers.Paths
}

func writeSite(t *testing.T, files map[string]string) string {
	t.Helper()
	site := filepath.Join(t.TempDir(), "site")
	for file, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(site, file)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(site, file), []byte(text), 0o600))
	}
	return site
}

// deploySite deploys files as a worker with that name and that way to write the path of a page.
func deploySite(t *testing.T, f *fleettest.Fleet, site, name, html string) {
	t.Helper()
	assets := map[string]string{"directory": ".", "html": html}
	manifest, err := json.Marshal(map[string]any{"name": name, "assets": assets})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(site, "pinwheel.json"), manifest, 0o600))
	f.Deploy(t, site, "--owner", "npm")
}

// request asks a worker for a path as it is written: no redirect is followed.
func request(t *testing.T, f *fleettest.Fleet, name, method, path, header, value string) (int, http.Header, string) {
	t.Helper()
	conn, err := net.Dial("tcp", f.HTTP)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	if header != "" {
		header += ": " + value + "\r\n"
	}
	_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: %s--npm.w.test\r\nConnection: close\r\n%s\r\n",
		method, path, name, header)
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	require.NoError(t, err, path)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err, path)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, resp.Header, string(body)
}
