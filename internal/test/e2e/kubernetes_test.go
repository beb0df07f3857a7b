package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// pod is what a test needs of the pods of a Deployment.
type pod struct {
	TerminationGracePeriodSeconds int
	SecurityContext               struct{ RunAsUser, RunAsGroup int }
	Volumes                       []struct {
		Name     string
		EmptyDir *struct{}
		Secret   *struct{ Items []struct{ Key string } }
	}
	Containers []container
}

type container struct {
	Args []string
	Env  []struct {
		Name, Value string
		ValueFrom   any
	}
	Ports []struct {
		Name          string
		ContainerPort int
	}
	VolumeMounts                                []struct{ Name, MountPath string }
	StartupProbe, LivenessProbe, ReadinessProbe probe
}

type probe struct {
	HTTPGet struct{ Path, Port string }
}

// podOfTheBase reads the pod of deploy/kustomize/base. .ci/kube tests that it is that of the chart.
func podOfTheBase(t *testing.T) pod {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "deploy/kustomize/base/pinwheel.yaml"))
	require.NoError(t, err)
	for dec := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var plain map[string]any
		require.NoError(t, dec.Decode(&plain), "there is a Deployment")
		text, err := json.Marshal(plain)
		require.NoError(t, err)
		var o struct {
			Spec struct{ Template struct{ Spec pod } }
		}
		if plain["kind"] == "Deployment" {
			require.NoError(t, json.Unmarshal(text, &o))
			return o.Spec.Template.Spec
		}
	}
}

// readOnly runs a program as a pod does: as its user, without privileges, and with a root that it cannot write. It may
// write to /mnt/tmp, and reads the secrets from /mnt/secrets. Who is not root has no other users.
const readOnly = `
set -e
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs /mnt
touch /mnt/pinwheel && mount --bind "$1" /mnt/pinwheel
shift
mkdir -m 1777 /mnt/tmp && mkdir /mnt/secrets
cp "$SECRETS"/* /mnt/secrets
chmod 440 /mnt/secrets/*
mount -o remount,bind,ro /
as=
if [ -n "$ID" ]; then
  chown "0:$ID" /mnt/secrets/*
  as="setpriv --reuid $ID --regid $ID --clear-groups --no-new-privs --bounding-set=-all"
fi
if $as touch /tmp/written /var/tmp/written 2>/dev/null; then
  echo 'the root can be written' >&2
  exit 1
fi
exec $as /mnt/pinwheel "$@"
`

// A pod of the chart and the kustomization takes events on a read-only root, answers its probes, and ends in time. Only
// addresses and places of files are the test's.
func TestKubernetesPod(t *testing.T) {
	t.Parallel()
	p := podOfTheBase(t)
	c := p.Containers[0]
	port := natstest.FreePort(t)
	listens := map[string]string{} // ports by name
	for _, at := range c.Ports {
		listens[at.Name] = strconv.Itoa(at.ContainerPort)
	}
	secrets := t.TempDir()
	code, _, errs := pinwheel(t, nil, "secrets", "keygen", filepath.Join(secrets, "age.key"))
	require.Zero(t, code, errs)
	for name, value := range map[string]string{"nats-user": "fleet", "nats-password": "fleet-secret",
		"control-token": "0123456789abcdef"} {
		require.NoError(t, os.WriteFile(filepath.Join(secrets, name), []byte(value), 0o600))
	}
	env := []string{"TMPDIR=/mnt/tmp", "SECRETS=" + secrets, "PINWHEEL_CONFINE=require",
		"ID=" + strconv.Itoa(p.SecurityContext.RunAsUser)}
	in := []string{"unshare", "--mount"}
	if os.Getuid() != 0 {
		in, env[3] = append(in, "--map-root-user"), "ID="
	}
	for _, e := range c.Env {
		value := e.Value
		require.Nil(t, e.ValueFrom, "secrets are files")
		switch {
		case e.Name == "PINWHEEL_NATS_URL":
			continue
		case e.Name == "PINWHEEL_ADMIN_ADDR":
			require.Equal(t, ":"+listens["admin"], value)
			value = "127.0.0.1:" + strconv.Itoa(port)
		case e.Name == "PINWHEEL_HTTP_ADDR":
			require.Equal(t, ":"+listens["http"], value)
			value = "127.0.0.1:0"
		case strings.HasPrefix(value, "/etc/pinwheel/secrets/"):
			require.FileExists(t, filepath.Join(secrets, filepath.Base(value)))
			value = "/mnt/secrets/" + filepath.Base(value)
		}
		env = append(env, e.Name+"="+value)
	}
	writes := map[string]bool{}
	for _, v := range p.Volumes {
		writes[v.Name] = v.EmptyDir != nil
	}
	for _, m := range c.VolumeMounts {
		require.Equal(t, m.MountPath == "/tmp", writes[m.Name], "%s: nothing else is written", m.MountPath)
	}
	require.Equal(t, []string{"serve"}, c.Args)

	nats := natstest.StartConfigured(t, filepath.Join(repository, "deploy/nats/users.conf"))
	serve := fleettest.ServeIn(t, append(in, "sh", "-c", readOnly, "sh"), nats, env...)
	for _, probe := range []probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		require.Equal(t, "admin", probe.HTTPGet.Port)
		require.Eventually(t, func() bool {
			status, _, err := serve.TryGet(probe.HTTPGet.Path)
			return err == nil && status == http.StatusOK
		}, patience, tick, probe.HTTPGet.Path)
	}
	user := []string{"PINWHEEL_NATS_URL=" + nats, "PINWHEEL_NATS_USER=fleet", "PINWHEEL_NATS_PASSWORD=fleet-secret",
		"PINWHEEL_CONTROL_TOKEN=0123456789abcdef"}
	code, _, errs = pinwheel(t, user, "deploy", filepath.Join(repository, "examples/hello.js"), "--owner", "acme")
	require.Zero(t, code, errs)
	code, out, errs := pinwheel(t, user, "send", "fetch", "acme/hello", "--data", `{"name":"Ada"}`)
	require.Zero(t, code, errs)
	require.Contains(t, out, "Ada")
	serve.Signal(syscall.SIGTERM)
	require.NoError(t, serve.Wait())
	require.Greater(t, time.Duration(p.TerminationGracePeriodSeconds)*time.Second, 40*time.Second,
		"the sleep of preStop, the drain, and the 5 s of the supervisor")
}

// pinwheel runs a pinwheel command.
func pinwheel(t *testing.T, env []string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	cmd := fleettest.Command(env, args...)
	cmd.Stdout, cmd.Stderr = &o, io.Writer(&e)
	err := cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}
