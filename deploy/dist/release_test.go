//go:build dist

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"
)

// TestRelease makes a release of HEAD, amd64 twice, and uses it as its users do: in a Debian that has no compiler and
// no Go, on the other architecture, as packages, and as a container. It needs root, for chroot and what installs there.
func TestRelease(t *testing.T) {
	first := t.TempDir()
	commit, err := output(t.Context(), ".", nil, "git", "rev-parse", "HEAD") // somebody may commit while the test runs
	require.NoError(t, err)
	system := filepath.Join(t.TempDir(), "debian")
	bootstrapped := make(chan error, 1)
	go func() { // beside the compiler; the test waits for it
		_, err := output(t.Context(), ".", nil, "debootstrap", "--variant=minbase", "bookworm", system)
		bootstrapped <- err
	}()
	err = run(t.Context(), commit, first, []string{"amd64", "arm64"})
	require.NoError(t, errors.Join(err, <-bootstrapped))

	// Alone: it says how long a newcomer waits.
	t.Run("ArchiveAnswers", func(t *testing.T) { archiveAnswers(t, first, system) })
	for name, check := range map[string]func(*testing.T){
		"OtherArchitectureAnswers": func(t *testing.T) { otherArchitectureAnswers(t, first) },
		"Packages":                 func(t *testing.T) { debInstalls(t, first, system); rpmInstalls(t, first, system) },
		"Image":                    func(t *testing.T) { lineOfReadme(t, first); imageRuns(t, first) },
		"EveryModuleIsNamed":       func(t *testing.T) { everyModuleIsNamed(t, first) },
		"SameBytesTwice": func(t *testing.T) {
			second := t.TempDir()
			require.NoError(t, run(t.Context(), commit, second, []string{"amd64"}))
			sameBytes(t, first, second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

func everyModuleIsNamed(t *testing.T, release string) {
	for _, arch := range []string{"amd64", "arm64"} {
		dir := unpack(t, release, arch, t.TempDir())
		notices, err := os.ReadFile(filepath.Join(dir, "NOTICES"))
		require.NoError(t, err)
		program := filepath.Join(dir, "pinwheel")
		requireNamed(t, program, notices, filepath.Join(release, "pinwheel-linux-"+arch+".cdx.json"))
		info, err := os.Stat(program)
		require.NoError(t, err)
		t.Logf("the program of %s has %.1f MB", arch, float64(info.Size())/1e6)
	}
}

// sameBytes compares a release of both architectures with one of amd64 alone.
func sameBytes(t *testing.T, both, one string) {
	sums := text(t, both, "SHA256SUMS")
	var image [2]string
	for i, dir := range []string{both, one} {
		out, err := command(t, dir, "sha256sum", "--strict", "-c", "SHA256SUMS")
		require.NoError(t, err, out)
		// The digest of the archive is that of the list of both architectures: the image is its layers and its configuration.
		for _, what := range []string{"--format={{.Layers}}", "--config"} {
			out, err := command(t, dir, "skopeo", "inspect", "--override-arch", "amd64", what,
				"oci-archive:"+filepath.Join(dir, imageArchive))
			require.NoError(t, err, out)
			image[i] += out
		}
	}
	n := 0
	for line := range strings.Lines(text(t, one, "SHA256SUMS")) {
		if !strings.HasSuffix(line, "  "+imageArchive+"\n") { // it has the other architecture too
			require.Contains(t, sums, line)
			n++
		}
	}
	require.Equal(t, 5, n)
	require.Equal(t, image[0], image[1])
}

func text(t *testing.T, elem ...string) string {
	t.Helper()
	body, err := os.ReadFile(filepath.Join(elem...))
	require.NoError(t, err)
	return string(body)
}

// unpack unpacks an archive below dir, and returns the directory that it makes there.
func unpack(t *testing.T, release, arch, dir string) string {
	t.Helper()
	name := "pinwheel-linux-" + arch
	out, err := command(t, dir, "tar", "-xzf", filepath.Join(release, name+".tar.gz"))
	require.NoError(t, err, out)
	return filepath.Join(dir, name)
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
}

// answers starts a process which is `pinwheel dev` of examples/hello.js at a port, waits for its answer, and ends it.
// It logs how long that took, also since a moment before.
func answers(t *testing.T, since time.Time, port, name string, args ...string) {
	t.Helper()
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	cmd.Env = append(os.Environ(), "PINWHEEL_ADMIN_ADDR=127.0.0.1:0")
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ask := func() error {
		select {
		case err := <-ended:
			ended <- err
			return backoff.Permanent(fmt.Errorf("it ended: %w", err))
		default:
		}
		res, err := http.Post("http://127.0.0.1:"+port+"/hello", "application/json", strings.NewReader(`{"name":"Ada"}`))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		var body bytes.Buffer
		if _, err := body.ReadFrom(res.Body); err != nil {
			return err
		}
		if res.StatusCode != http.StatusOK || strings.TrimSpace(body.String()) != `{"hello":"Ada"}` {
			return fmt.Errorf("%s: %s", res.Status, body.String())
		}
		return nil
	}
	often := backoff.NewConstantBackOff(20 * time.Millisecond)
	err := backoff.Retry(ask, backoff.WithContext(often, t.Context()))
	t.Logf("the first answer came %.2f s after the start, %.2f s after the first byte was unpacked",
		time.Since(began).Seconds(), time.Since(since).Seconds())
	_ = cmd.Process.Signal(syscall.SIGTERM)
	<-ended
	require.NoError(t, err, "%s", said.String())
}

// dev are the arguments of pinwheel dev for examples/hello.js, with its own ports.
func dev(t *testing.T) (port string, args []string) {
	t.Helper()
	port = freePort(t)
	return port, []string{"dev", "--port", port, "--nats-port", "-1", "examples/hello.js"}
}

func archiveAnswers(t *testing.T, release, system string) {
	since := time.Now()
	dir := unpack(t, release, runtime.GOARCH, filepath.Join(system, "opt"))
	for _, tool := range []string{"go", "gcc", "g++", "cc"} {
		_, err := command(t, ".", "chroot", system, "sh", "-c", "command -v "+tool)
		require.Error(t, err, "the system has %s", tool)
	}
	port, args := dev(t)
	line := "cd /opt/" + filepath.Base(dir) + " && exec ./pinwheel " + strings.Join(args, " ")
	answers(t, since, port, "chroot", system, "sh", "-c", line)
}

func otherArchitectureAnswers(t *testing.T, release string) {
	other, emulator, libs := "arm64", "qemu-aarch64-static", "/usr/aarch64-linux-gnu"
	if runtime.GOARCH == "arm64" {
		other, emulator, libs = "amd64", "qemu-x86_64-static", "/usr/x86_64-linux-gnu"
	}
	since := time.Now()
	dir := unpack(t, release, other, t.TempDir())
	port, args := dev(t)
	line := "cd " + dir + " && exec " + emulator + " -L " + libs + " ./pinwheel " + strings.Join(args, " ")
	answers(t, since, port, "sh", "-c", line)
}

// inside runs a line of shell in a system.
func inside(t *testing.T, system, line string) string {
	t.Helper()
	out, err := command(t, ".", "chroot", system, "sh", "-c", line)
	require.NoError(t, err, out)
	return out
}

func debInstalls(t *testing.T, release, system string) {
	in := func(line string) string { return inside(t, system, line) }
	deb := "pinwheel-linux-" + runtime.GOARCH + ".deb"
	out, err := command(t, ".", "cp", filepath.Join(release, deb), filepath.Join(system, "opt"))
	require.NoError(t, err, out)
	in("apt-get install -yq --no-install-recommends systemd /opt/" + deb)
	require.Contains(t, in("pinwheel version"), "pinwheel v")
	require.Equal(t, "pinwheel pinwheel 750\n", in("stat -c '%U %G %a' /var/lib/pinwheel"))
	require.Equal(t, "root root 600\n", in("stat -c '%U %G %a' /etc/pinwheel/environment"))
	require.Empty(t, strings.TrimSpace(in("systemd-analyze verify /usr/lib/systemd/system/pinwheel.service")))
	in("echo PINWHEEL_LOG_LEVEL=debug >>/etc/pinwheel/environment; echo precious >/var/lib/pinwheel/kept")
	in("DEBIAN_FRONTEND=noninteractive dpkg -i /opt/" + deb)
	require.Contains(t, in("cat /etc/pinwheel/environment"), "PINWHEEL_LOG_LEVEL=debug")
	in("dpkg --remove pinwheel && dpkg --purge pinwheel")
	require.Equal(t, "precious\n", in("cat /var/lib/pinwheel/kept"))
	_, err = command(t, ".", "chroot", system, "sh", "-c", "command -v pinwheel")
	require.Error(t, err)
}

// rpmInstalls installs the RPM package into the same system, which has no database of rpm and nothing of the other
// package any more.
func rpmInstalls(t *testing.T, release, system string) {
	in := func(line string) string { return inside(t, system, line) }
	in("userdel pinwheel && rm -r /var/lib/pinwheel && test ! -e /etc/pinwheel")
	rpm := func(args ...string) string {
		t.Helper()
		out, err := command(t, ".", "rpm", append([]string{"--root", system, "--nodeps"}, args...)...)
		require.NoError(t, err, out)
		return out
	}
	file := filepath.Join(release, "pinwheel-linux-"+runtime.GOARCH+".rpm")
	rpm("--install", file)
	require.Contains(t, in("pinwheel version"), "pinwheel v")
	require.Equal(t, "pinwheel pinwheel 750\n", in("stat -c '%U %G %a' /var/lib/pinwheel"))
	require.Equal(t, "root root 600\n", in("stat -c '%U %G %a' /etc/pinwheel/environment"))
	require.Empty(t, strings.TrimSpace(in("systemd-analyze verify /usr/lib/systemd/system/pinwheel.service")))
	require.Empty(t, strings.TrimSpace(rpm("--verify", "pinwheel")), "each file is as the package has it")
	in("echo PINWHEEL_LOG_LEVEL=debug >>/etc/pinwheel/environment; echo precious >/var/lib/pinwheel/kept")
	rpm("--upgrade", "--force", file)
	require.Contains(t, in("cat /etc/pinwheel/environment"), "PINWHEEL_LOG_LEVEL=debug")
	rpm("--erase", "pinwheel")
	require.Equal(t, "pinwheel\nprecious\n", in("stat -c %U /var/lib/pinwheel; cat /var/lib/pinwheel/kept"))
	_, err := command(t, ".", "chroot", system, "sh", "-c", "command -v pinwheel")
	require.Error(t, err)
}

// imageRuns reads the image with skopeo and umoci, which know nothing of how it was made, and runs it as its user in a
// root that cannot be written.
func imageRuns(t *testing.T, release string) {
	dir, data := t.TempDir(), t.TempDir()
	archive := "oci-archive:" + filepath.Join(release, imageArchive)
	for _, arch := range []string{"amd64", "arm64"} {
		out, err := command(t, dir, "skopeo", "copy", "--override-arch", arch, archive, "oci:"+dir+"/"+arch+":v")
		require.NoError(t, err, out)
		blobs, err := command(t, dir, "du", "-sb", arch)
		require.NoError(t, err)
		var size int
		_, err = fmt.Sscan(blobs, &size)
		require.NoError(t, err)
		t.Logf("the image of %s has %.1f MB", arch, float64(size)/1e6)
		require.Less(t, size, 60_000_000)
	}
	since := time.Now()
	out, err := command(t, dir, "umoci", "unpack", "--image", runtime.GOARCH+":v", "bundle")
	require.NoError(t, err, out)
	hello := filepath.Join(data, "hello.js")
	require.NoError(t, os.WriteFile(hello, []byte(text(t, "../../examples/hello.js")), 0o644))
	require.NoError(t, os.Chmod(data, 0o777))
	port, args := dev(t)
	args[len(args)-1] = "hello.js"
	configure(t, filepath.Join(dir, "bundle/config.json"), data, args)
	// crun refuses the two trees of cgroups that some machines have. It makes no cgroup here.
	const line = "mount -t tmpfs none /sys/fs/cgroup && exec crun --root %[1]s/crun --cgroup-manager=disabled " +
		"run --bundle %[1]s/bundle pinwheel-%[2]s"
	answers(t, since, port, "unshare", "--mount", "sh", "-c", fmt.Sprintf(line, dir, port))
}

// configure makes of the configuration that umoci made of the image one with a root that cannot be written, a user
// namespace, the network of this machine, and a directory for data. The program and its user stay the image's.
func configure(t *testing.T, file, data string, args []string) {
	const volume = "/var/lib/pinwheel"
	var c map[string]any
	require.NoError(t, json.Unmarshal([]byte(text(t, file)), &c))
	process, linux := c["process"].(map[string]any), c["linux"].(map[string]any)
	require.Equal(t, map[string]any{"uid": float64(user), "gid": float64(user)}, process["user"])
	program := process["args"].([]any)[0]
	require.Equal(t, "/usr/local/bin/pinwheel", program)
	process["args"], process["cwd"], process["terminal"] = append([]any{program}, toAny(args)...), volume, false
	process["env"] = append(process["env"].([]any), "PINWHEEL_ADMIN_ADDR=127.0.0.1:0")
	c["root"].(map[string]any)["readonly"] = true
	var namespaces []any
	for _, kind := range []string{"pid", "ipc", "uts", "mount", "user"} {
		namespaces = append(namespaces, map[string]any{"type": kind})
	}
	ids := []any{map[string]any{"containerID": 0, "hostID": 0, "size": 65536}}
	linux["namespaces"], linux["uidMappings"], linux["gidMappings"] = namespaces, ids, ids
	delete(linux, "resources")
	var mounts []any
	for _, m := range c["mounts"].([]any) {
		if !strings.HasPrefix(m.(map[string]any)["destination"].(string), "/sys") { // it belongs to the network's namespace
			mounts = append(mounts, m)
		}
	}
	c["mounts"] = append(mounts, map[string]any{"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
		map[string]any{"destination": volume, "type": "bind", "source": data, "options": []any{"bind", "rw"}})
	body, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, body, 0o600))
}

func toAny(list []string) (all []any) {
	for _, v := range list {
		all = append(all, v)
	}
	return all
}

// lineOfReadme downloads, checks and unpacks as README.md says, from the files of this release.
func lineOfReadme(t *testing.T, release string) {
	_, get, found := strings.Cut(text(t, "../../README.md"), "\n## Get it\n")
	require.True(t, found)
	_, line, found := strings.Cut(get, "\n```sh\n")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n```")
	const from = "https://github.com/pinwheel-run/pinwheel/releases/latest/download"
	require.Contains(t, line, from)
	dir := t.TempDir()
	out, err := command(t, dir, "sh", "-c", strings.Replace(line, from, "file://"+release, 1))
	require.NoError(t, err, out)
	out, err = command(t, dir, filepath.Join(dir, "pinwheel-linux-"+runtime.GOARCH, "pinwheel"), "version")
	require.NoError(t, err, out)
	archive := filepath.Join(dir, "pinwheel-linux-"+runtime.GOARCH+".tar.gz")
	require.NoError(t, os.WriteFile(archive, []byte("another"), 0o600))
	out, err = command(t, dir, "sha256sum", "-c", "--ignore-missing", "SHA256SUMS")
	require.Error(t, err, out)
}
