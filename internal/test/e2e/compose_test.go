package e2e

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// The service of docker-compose.yml runs with its environment, its health check tells whether it is ready, and Docker
// waits longer for its end than a drain takes. Only the addresses are the test's.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	options, err := cli.NewProjectOptions([]string{filepath.Join("..", "..", "..", "docker-compose.yml")},
		cli.WithName("pinwheel"))
	require.NoError(t, err)
	project, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	service, err := project.GetService("fleet")
	require.NoError(t, err)

	port := strconv.Itoa(natstest.FreePort(t))
	check := healthCheck(t, service, "/8422", "/"+port)
	require.Error(t, exec.Command(check[0], check[1:]...).Run(), "nothing listens")
	srv := natstest.Start(t)
	env := []string{"PINWHEEL_ADMIN_ADDR=127.0.0.1:" + port, "PINWHEEL_HTTP_ADDR=127.0.0.1:0"}
	for _, name := range []string{"PINWHEEL_HTTP_ADDR", "PINWHEEL_CONSOLE_ADDR", "PINWHEEL_CONSOLE_TOKEN",
		"PINWHEEL_CONTROL_TOKEN", "PINWHEEL_SECRETS_KEY"} {
		require.Contains(t, service.Environment, name)
	}
	for name, value := range service.Environment {
		if name != "PINWHEEL_NATS_URL" && name != "PINWHEEL_ADMIN_ADDR" && name != "PINWHEEL_HTTP_ADDR" {
			env = append(env, name+"="+*value)
		}
	}
	fleettest.Serve(t, srv.URL(), env...)
	require.Eventually(t, func() bool { return exec.Command(check[0], check[1:]...).Run() == nil }, patience, tick)
	srv.Close()
	require.Eventually(t, func() bool { return exec.Command(check[0], check[1:]...).Run() != nil }, patience, tick,
		"NATS is away")

	drain, err := time.ParseDuration(*service.Environment["PINWHEEL_DRAIN_TIMEOUT"])
	require.NoError(t, err)
	require.Greater(t, time.Duration(*service.StopGracePeriod), drain)
	require.Equal(t, "start-first", service.Deploy.UpdateConfig.Order)
	require.EqualValues(t, 1, *service.Deploy.UpdateConfig.Parallelism)
	for _, v := range project.Services["nats"].Volumes {
		if v.Type == types.VolumeTypeBind {
			require.FileExists(t, v.Source)
		}
	}
	require.FileExists(t, filepath.Join(service.Build.Context, service.Build.Dockerfile))
}

// healthCheck returns the command of the health check, with another port.
func healthCheck(t *testing.T, s types.ServiceConfig, from, to string) []string {
	t.Helper()
	require.Equal(t, "CMD", s.HealthCheck.Test[0])
	command := strings.ReplaceAll(strings.Join(s.HealthCheck.Test[1:], "\x00"), from, to)
	return strings.Split(command, "\x00")
}
