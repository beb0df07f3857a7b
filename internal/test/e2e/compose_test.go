package e2e

import (
	"flag"
	"net"
	"net/url"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const repository = "../../.."

// composeProject loads a compose file of the repository, as docker compose does, and its service fleet.
func composeProject(t *testing.T, file string) (*types.Project, types.ServiceConfig) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{filepath.Join(repository, file)}, cli.WithName("pinwheel"))
	require.NoError(t, err)
	p, err := options.LoadProject(t.Context())
	require.NoError(t, err)
	fleet, err := p.GetService("fleet")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(fleet.Build.Context, fleet.Build.Dockerfile))
	require.Equal(t, "ghcr.io/pinwheel-run/pinwheel:latest", fleet.Image)
	require.True(t, fleet.ReadOnly)
	require.Equal(t, types.StringList{"/tmp"}, fleet.Tmpfs)
	require.Equal(t, []string{"ALL"}, fleet.CapDrop)
	require.Equal(t, []string{"no-new-privileges:true"}, fleet.SecurityOpt)
	for _, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if filepath.Ext(v.Source) == "" {
					require.DirExists(t, v.Source)
				} else {
					require.FileExists(t, v.Source)
				}
			}
		}
	}
	return p, fleet
}

// environment is that of a service, with addresses of the test's own.
func environment(t *testing.T, s types.ServiceConfig, port string) []string {
	t.Helper()
	env := []string{"PINWHEEL_ADMIN_ADDR=127.0.0.1:" + port, "PINWHEEL_HTTP_ADDR=127.0.0.1:0"}
	for _, name := range []string{"PINWHEEL_HTTP_ADDR", "PINWHEEL_CONSOLE_ADDR", "PINWHEEL_CONSOLE_TOKEN_FILE",
		"PINWHEEL_CONTROL_TOKEN_FILE", "PINWHEEL_SECRETS_KEY"} {
		require.Contains(t, s.Environment, name)
	}
	for name, value := range s.Environment {
		if name != "PINWHEEL_NATS_URL" && name != "PINWHEEL_ADMIN_ADDR" && name != "PINWHEEL_HTTP_ADDR" {
			env = append(env, name+"="+*value)
		}
	}
	drain, err := time.ParseDuration(*s.Environment["PINWHEEL_DRAIN_TIMEOUT"])
	require.NoError(t, err)
	require.Greater(t, time.Duration(*s.StopGracePeriod), drain)
	return env
}

// The service of docker-compose.yml runs with its environment, its health check tells whether it is ready, and Docker
// waits longer for its end than a drain takes. Only the addresses are the test's.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	_, service := composeProject(t, "docker-compose.yml")
	port := strconv.Itoa(natstest.FreePort(t))
	check := healthCheck(t, service, "/8422", "/"+port)
	require.Error(t, exec.Command(check[0], check[1:]...).Run(), "nothing listens")
	srv := natstest.Start(t)
	fleettest.Serve(t, srv.URL(), environment(t, service, port)...)
	require.Eventually(t, func() bool { return exec.Command(check[0], check[1:]...).Run() == nil }, patience, tick)
	srv.Close()
	require.Eventually(t, func() bool { return exec.Command(check[0], check[1:]...).Run() != nil }, patience, tick,
		"NATS is away")
	require.Equal(t, "start-first", service.Deploy.UpdateConfig.Order)
	require.EqualValues(t, 1, *service.Deploy.UpdateConfig.Parallelism)
}

// healthCheck returns the command of the health check, with another port.
func healthCheck(t *testing.T, s types.ServiceConfig, from, to string) []string {
	t.Helper()
	require.Equal(t, "CMD", s.HealthCheck.Test[0])
	command := strings.ReplaceAll(strings.Join(s.HealthCheck.Test[1:], "\x00"), from, to)
	return strings.Split(command, "\x00")
}

// The servers of docker-compose.cluster.yml, started by their command lines, are a cluster, and its service stores
// three copies in it. Only addresses and directories are the test's.
func TestClusterComposeFile(t *testing.T) {
	t.Parallel()
	p, fleet := composeProject(t, "docker-compose.cluster.yml")
	all := map[string]*server.Options{}
	data := map[string]bool{}
	for name := range fleet.DependsOn {
		require.Equal(t, types.ServiceConditionHealthy, fleet.DependsOn[name].Condition, name)
		all[name] = serverOptions(t, p.Services[name])
		for _, v := range p.Services[name].Volumes {
			if v.Target == "/data" {
				data[v.Source] = true
			}
		}
	}
	require.Len(t, all, 3, "nothing else is there to wait for")
	require.Len(t, data, 3, "each server has data of its own")
	at := map[string]string{} // addresses for routes
	for name, o := range all {
		o.Cluster.Host, o.Cluster.Port = "127.0.0.1", natstest.FreePort(t)
		at[name] = net.JoinHostPort(o.Cluster.Host, strconv.Itoa(o.Cluster.Port))
	}
	var urls []string
	for _, address := range strings.Split(*fleet.Environment["PINWHEEL_NATS_URL"], ",") {
		u, err := url.Parse(address)
		require.NoError(t, err)
		o := all[u.Hostname()]
		require.NotNil(t, o, address)
		require.Equal(t, strconv.Itoa(o.Port), u.Port())
		for i, r := range o.Routes {
			require.Contains(t, at, r.Hostname())
			require.Equal(t, "6222", r.Port())
			o.Routes[i] = &url.URL{Scheme: "nats", Host: at[r.Hostname()]}
		}
	}
	for _, o := range all {
		urls = append(urls, natstest.StartOptions(t, o))
	}
	f := fleettest.Serve(t, strings.Join(urls, ","), environment(t, fleet, strconv.Itoa(natstest.FreePort(t)))...)
	nc, err := natstest.Dial(f.URL)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s, err := js.Stream(t.Context(), "PINWHEEL_EVENTS")
	require.NoError(t, err)
	info, err := s.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, 3, info.Config.Replicas)
	require.Len(t, info.Cluster.Replicas, 2)
}

// serverOptions are those of a server by its command line and the files that its container has.
func serverOptions(t *testing.T, s types.ServiceConfig) *server.Options {
	t.Helper()
	args := append([]string(nil), s.Command...)
	for i, arg := range args {
		for _, v := range s.Volumes {
			if path.Dir(arg) == v.Target {
				args[i] = filepath.Join(v.Source, path.Base(arg))
			}
		}
	}
	nothing := func() {}
	flags := flag.NewFlagSet("nats-server", flag.ContinueOnError)
	o, err := server.ConfigureOptions(flags, args, nothing, nothing, nothing)
	require.NoError(t, err)
	require.Equal(t, s.Name, o.ServerName)
	require.Equal(t, "0.0.0.0", o.Host)
	require.Equal(t, "0.0.0.0", o.Cluster.Host)
	require.Equal(t, 6222, o.Cluster.Port)
	require.Equal(t, "/data", o.StoreDir)
	require.Len(t, o.Routes, 3)
	monitor := net.JoinHostPort(o.HTTPHost, strconv.Itoa(o.HTTPPort))
	require.Contains(t, s.HealthCheck.Test, "http://"+monitor+"/healthz")
	require.Greater(t, time.Duration(*s.StopGracePeriod), o.LameDuckDuration+10*time.Second, "it hands over before")
	require.Equal(t, "SIGUSR2", s.StopSignal)
	o.HTTPHost, o.HTTPPort = "127.0.0.1", -1
	return o
}
