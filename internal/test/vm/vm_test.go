//go:build vm && linux

package vm_test

import (
	"bufio"
	"context"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// keep is where what is made once stays: the files of a Debian, and a file system of them.
var keep = flag.String("keep", filepath.Join(os.TempDir(), "pinwheel-vm"), "directory where the Debian is kept")

// patience is how long the machine may take. It may have to emulate a processor.
const patience = 40 * time.Minute

// suite and packages are what the Debian is made of, beside what it always has.
const (
	suite    = "bookworm"
	packages = "systemd-sysv,libstdc++6,ca-certificates,linux-image-cloud-amd64"
)

// machine makes a virtual machine.
type machine struct {
	t    *testing.T
	base string // directory that is kept
	with string // directory of what this run brings
}

// The shipped unit of systemd runs in a virtual machine, and confines its processes and cells. package inside looks.
func TestMachine(t *testing.T) {
	for _, program := range []string{"qemu-system-x86_64", "debootstrap", "mke2fs"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("NOT TESTED: %v: Debian has it in qemu-system-x86, debootstrap or e2fsprogs", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Fatal("NOT TESTED: debootstrap needs root")
	}
	m := &machine{t: t, base: *keep, with: t.TempDir()}
	m.makeBase()
	m.makePayload()
	said := m.boot()
	require.Regexp(t, `(?m)^PASS$`, said)
	require.NotContains(t, said, "--- SKIP")
	require.GreaterOrEqual(t, strings.Count(said, "--- PASS"), 4)
}

// run runs a program of this machine.
func (m *machine) run(env []string, program string, args ...string) {
	m.t.Helper()
	m.t.Logf("%s: %s %s", time.Now().Format(time.TimeOnly), program, strings.Join(args, " "))
	cmd := exec.CommandContext(m.t.Context(), program, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(m.t, err, "%s", out)
}

func (m *machine) path(name string) string { return filepath.Join(m.base, name) }

// makeBase makes the Debian, unless it is there.
func (m *machine) makeBase() {
	m.t.Helper()
	if _, err := os.Stat(m.path("base.img")); err == nil {
		return
	}
	require.NoError(m.t, os.MkdirAll(m.base, 0o755))
	require.NoError(m.t, os.RemoveAll(m.path("root")))
	m.run(nil, "debootstrap", "--variant=minbase", "--include="+packages, suite, m.path("root"))
	for to, from := range map[string]string{"vmlinuz": "vmlinuz-*", "initrd": "initrd.img-*"} {
		found, err := filepath.Glob(filepath.Join(m.path("root"), "boot", from))
		require.NoError(m.t, err)
		require.Len(m.t, found, 1)
		m.run(nil, "cp", found[0], m.path(to))
	}
	// JetStream reserves room; the file has holes
	m.run(nil, "mke2fs", "-q", "-F", "-t", "ext4", "-d", m.path("root"), m.path("made.img"), "30G")
	require.NoError(m.t, os.Rename(m.path("made.img"), m.path("base.img")))
	require.NoError(m.t, os.RemoveAll(m.path("root")))
}

// makePayload makes the second disk: the program, with and without broken V8, the unit, and the test inside.
func (m *machine) makePayload() {
	m.t.Helper()
	const pinwheel = "github.com/pinwheel-run/pinwheel"
	m.run(nil, "go", "build", "-o", filepath.Join(m.with, "pinwheel"), pinwheel)
	m.run(nil, "go", "build", "-tags", "breach", "-o", filepath.Join(m.with, "pinwheel-breach"), pinwheel)
	m.run([]string{"CGO_ENABLED=0"}, "go", "test", "-c", "-tags", "vm", "-o", filepath.Join(m.with, "inside.test"),
		pinwheel+"/internal/test/vm/inside")
	m.run(nil, "cp", "../../../deploy/systemd/pinwheel.service", m.with)
	for name, text := range map[string]string{"begin": begin, "inside.service": service} {
		require.NoError(m.t, os.WriteFile(filepath.Join(m.with, name), []byte(text), 0o755))
	}
	m.run(nil, "mke2fs", "-q", "-F", "-t", "ext4", "-L", "payload", "-d", m.with, m.path("payload.img"), "800M")
}

// begin is what the kernel's command line has systemd run: it has the test begin when all else has.
const begin = `#!/bin/sh -e
mount -o remount,rw /
cp /mnt/inside.service /run/systemd/system/
systemctl daemon-reload
systemctl start --no-block multi-user.target inside.service
`

// service is the unit of the test. The machine ends with it.
const service = `[Unit]
After=multi-user.target
[Service]
WorkingDirectory=/mnt
ExecStart=/bin/sh -c "exec ./inside.test -test.v -test.timeout 30m >/dev/ttyS1 2>&1"
ExecStopPost=/bin/systemctl poweroff
`

// boot runs the machine until it ends itself, and returns what the test inside has said.
func (m *machine) boot() string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), patience)
	defer cancel()
	console := m.path("console.log")
	kernel := "root=/dev/vda rw quiet console=ttyS0 no_timer_check panic=-1 " +
		"systemd.run=\"/bin/sh -ec 'mount -o ro LABEL=payload /mnt; exec /mnt/begin'\" " +
		"systemd.run_success_action=none systemd.run_failure_action=poweroff"
	args := []string{
		"-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "5G", "-nographic", "-no-reboot",
		"-kernel", m.path("vmlinuz"), "-initrd", m.path("initrd"), "-append", kernel,
		"-drive", "file=" + m.path("base.img") + ",format=raw,if=virtio,snapshot=on",
		"-drive", "file=" + m.path("payload.img") + ",format=raw,if=virtio,snapshot=on",
		"-serial", "file:" + console, "-serial", "stdio", "-monitor", "none", "-nic", "none",
	}
	m.t.Logf("%s: the machine starts; its console is in %s", time.Now().Format(time.TimeOnly), console)
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", args...)
	out, err := cmd.StdoutPipe()
	require.NoError(m.t, err)
	cmd.Stderr = os.Stderr
	require.NoError(m.t, cmd.Start())
	var said strings.Builder
	lines := bufio.NewScanner(io.TeeReader(out, &said))
	for lines.Scan() {
		m.t.Logf("%s: %s", time.Now().Format(time.TimeOnly), lines.Text())
	}
	require.NoError(m.t, cmd.Wait(), "see %s", console)
	return regexp.MustCompile(`\r`).ReplaceAllString(said.String(), "")
}
