package e2e

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/test/testcert"
)

// curl is the command that people have. It asks the process at addr, over TLS.
type curl struct {
	t          *testing.T
	cert, addr string
	version    string // the option for the version of HTTP
}

// do runs curl with arguments that end with a path of acme/site, and returns its output. It writes what headers come to
// the second string.
func (c *curl) do(stdin io.Reader, args ...string) (out, head string) {
	c.t.Helper()
	out, head, err := c.try(stdin, args...)
	require.NoError(c.t, err)
	return out, head
}

// try is do with the error of curl.
func (c *curl) try(stdin io.Reader, args ...string) (out, head string, failed error) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "head")
	args[len(args)-1] = "https://site--acme.w.test" + args[len(args)-1]
	all := append([]string{
		"--disable", "--silent", "--show-error", "--max-time", "120", "--noproxy", "*", c.version, "--cacert", c.cert,
		"--connect-to", "::" + c.addr, "--dump-header", file,
	}, args...)
	cmd := exec.CommandContext(c.t.Context(), "curl", all...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &stdout, &stderr
	if err := cmd.Run(); err != nil {
		failed = fmt.Errorf("curl %q: %w: %s", args, err, &stderr)
	}
	b, err := os.ReadFile(file)
	require.NoError(c.t, err, "%v", failed)
	return stdout.String(), strings.ToLower(string(b)), failed
}

// TestTheCurlCommand asks a process as people do: each of these in HTTP/1.1 and HTTP/2, over TLS.
func TestTheCurlCommand(t *testing.T) {
	t.Parallel()
	if about, err := exec.CommandContext(t.Context(), "curl", "--version").Output(); err != nil ||
		!bytes.Contains(about, []byte(" HTTP2")) {
		if os.Getenv("CI") != "" {
			t.Fatal("the curl command, with HTTP/2, is missing: .ci/run installs it")
		}
		fmt.Fprintln(os.Stderr, "NOT TESTED: there is no command curl with HTTP/2")
		t.Skip("NOT TESTED: the curl command, with HTTP/2, is missing (apt-get install curl)")
	}
	certs := t.TempDir()
	testcert.Write(t, certs, "site--acme.w.test", 1)
	cert := filepath.Join(certs, "cert.pem")
	h := openFleet(t, withWeb, func(c *config.Config) { c.HTTPCert, c.HTTPKey = cert, filepath.Join(certs, "key.pem") })
	digits := strings.Repeat("0123456789", 10_000)
	h.deployDir(project(t, "", map[string]string{
		"pinwheel.json": `{"main": "main.js", "assets": {"directory": "dist"}, "http": {"maxBody": 20000000}, "limits": {"cpuMs": 60000, "wallMs": 300000}}`,
		"main.js": `export default { async fetch(request) {
			let size = 0;
			if (request.body) for await (const part of request.body) size += part.length;
			return new Response(request.method + " " + size + " " + (request.headers.get("content-length") ?? "unknown") + "\n");
		} }`,
		"dist/digits.txt": digits,
	}))
	for version, name := range map[string]string{"--http1.1": "HTTP/1.1", "--http2": "HTTP/2"} {
		t.Run(name, func(t *testing.T) {
			c := &curl{t: t, cert: cert, addr: h.fleet.HTTPAddr(), version: version}
			c.reads(name, digits)
			c.uploads(name)
			c.again(name)
		})
	}
}

func (c *curl) reads(name, digits string) {
	t := c.t
	out, head := c.do(nil, "--write-out", "%{http_version}", "/hello")
	require.Equal(t, "GET 0 unknown\n"+strings.TrimPrefix(name, "HTTP/"), out)
	require.True(t, strings.HasPrefix(head, strings.ToLower(name)+" 200"), head)

	out, head = c.do(nil, "/digits.txt")
	require.Equal(t, digits, out)
	_, tag, ok := strings.Cut(head, "\r\netag: ")
	require.True(t, ok, head)
	tag, _, _ = strings.Cut(tag, "\r\n")

	out, head = c.do(nil, "--compressed", "/digits.txt")
	require.Equal(t, digits, out)
	require.Contains(t, head, "\r\ncontent-encoding: br\r\n")
	out, head = c.do(nil, "--range", "10-19", "--header", "If-Range: "+tag, "/digits.txt")
	require.Equal(t, "0123456789", out)
	require.Contains(t, head, "\r\ncontent-range: bytes 10-19/100000\r\n")
	out, head = c.do(nil, "--range", "10-19", "--header", `If-Range: "another"`, "/digits.txt")
	require.Equal(t, digits, out, "the file is another one now, so all of it comes")
	require.NotContains(t, head, "content-range")

	part := filepath.Join(t.TempDir(), "part")
	require.NoError(t, os.WriteFile(part, []byte(digits[:12_345]), 0o600))
	_, _ = c.do(nil, "--continue-at", "-", "--output", part, "/digits.txt")
	whole, err := os.ReadFile(part)
	require.NoError(t, err)
	require.Equal(t, digits, string(whole), "a download goes on where it broke off")

	_, head = c.do(nil, "--head", "/digits.txt")
	require.Contains(t, head, "\r\ncontent-length: 100000\r\n")
	_, head = c.do(nil, "--head", "/hello")
	require.Contains(t, head, " 200")
}

func (c *curl) uploads(name string) {
	t := c.t
	const size = 8 << 20
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, make([]byte, size), 0o600))
	out, head := c.do(nil, "--header", "Expect: 100-continue", "--expect100-timeout", "100", "--upload-file", file, "/up")
	require.Equal(t, fmt.Sprintf("PUT %d %d\n", size, size), out)
	if name == "HTTP/1.1" {
		require.True(t, strings.HasPrefix(head, "http/1.1 100 continue\r\n"), head)
	}
	// A body that is refused is not sent.
	const large = 30 << 20
	require.NoError(t, os.Truncate(file, large))
	out, head, err := c.try(nil, "--header", "Expect: 100-continue", "--expect100-timeout", "100", "--upload-file", file,
		"--write-out", "%{http_code} %{size_upload}", "/up")
	require.Contains(t, head, strings.ToLower(name)+" 413", "%v", err)
	// curl 7.88 may drop a body of HTTP/2 that it has not read yet when the stream is reset behind it, and exits with 18.
	if name == "HTTP/1.1" {
		require.NoError(t, err)
		require.Equal(t, "the body is larger than 20000000 bytes\n413 0", out)
	}

	// it does not know the length
	out, _ = c.do(io.LimitReader(bytes.NewReader(make([]byte, size)), size), "--upload-file", "-", "/up")
	require.Equal(t, fmt.Sprintf("PUT %d unknown\n", size), out)
	out, _ = c.do(nil, "--data", `{"id":7}`, "/orders")
	require.Equal(t, "POST 8 8\n", out)
}

// again sends many requests on one connection.
func (c *curl) again(name string) {
	t := c.t
	check := func(out string, n int) {
		t.Helper()
		require.Equal(t, n, strings.Count(out, "POST 4 4\n"))
		require.Equal(t, []int{1, n - 1}, []int{strings.Count(out, "connects: 1\n"), strings.Count(out, "connects: 0\n")})
	}
	out, _ := c.do(nil, "--data", "body", "--write-out", "connects: %{num_connects}\n", "/[1-300]")
	check(out, 300)
	if name == "HTTP/2" {
		out, _ = c.do(nil, "--parallel", "--parallel-max", "50", "--data", "body", "--write-out",
			"connects: %{num_connects}\n", "/[1-300]")
		check(out, 300)
	}
}
