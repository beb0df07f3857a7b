package machine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"
)

// urlLine is the start of the line in which a server prints its address.
const urlLine = "listening at "

// NewServerCommand is nats-server as a child of this program. So nothing has to be installed, and the version is the
// one in go.mod.
func NewServerCommand() *cobra.Command {
	var opts server.Options
	var routes string
	c := &cobra.Command{
		Use: "nats-server", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Host, opts.Port, opts.JetStream, opts.NoSigs, opts.DisableJetStreamBanner =
				"127.0.0.1", server.RANDOM_PORT, true, true, true
			opts.Cluster.Host = opts.Host
			if routes != "" {
				opts.Routes = server.RoutesFromStr(routes)
			}
			s, err := server.NewServer(&opts)
			if err != nil {
				return err
			}
			s.Start()
			if !s.ReadyForConnections(time.Minute) {
				return errors.New("nats-server is not ready after a minute")
			}
			fmt.Fprintln(cmd.OutOrStdout(), urlLine+s.ClientURL())
			<-cmd.Context().Done()
			s.Shutdown()
			s.WaitForShutdown()
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&opts.ServerName, "name", "one", "")
	f.StringVar(&opts.StoreDir, "store", "", "")
	f.StringVar(&opts.Cluster.Name, "cluster", "", "")
	f.IntVar(&opts.Cluster.Port, "cluster-port", 0, "")
	f.StringVar(&routes, "routes", "", "")
	return c
}

// StartServers starts n servers, as a cluster if n is more than one. It returns all their URLs in one string.
func StartServers(ctx context.Context, dir string, n int) (servers []*Child, url string, err error) {
	defer func() {
		if err != nil {
			StopAll(servers)
		}
	}()
	var ports, routes, urls []string
	for range n {
		port, err := FreePort()
		if err != nil {
			return nil, "", err
		}
		ports, routes = append(ports, port), append(routes, "nats://127.0.0.1:"+port)
	}
	for i := range n {
		name := "n" + strconv.Itoa(i)
		args := []string{"nats-server", "--name", name, "--store", filepath.Join(dir, name)}
		if n > 1 {
			args = append(args, "--cluster", "load", "--cluster-port", ports[i], "--routes", strings.Join(routes, ","))
		}
		c, url, err := startServer(ctx, args)
		if err != nil {
			return servers, "", err
		}
		servers, urls = append(servers, c), append(urls, url)
	}
	url = strings.Join(urls, ",")
	return servers, url, awaitJetStream(ctx, url, n)
}

func startServer(ctx context.Context, args []string) (*Child, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	up := make(chan string, 1)
	c, err := StartChild("nats-server", exec.Command(self, args...), func(line string) {
		if url, ok := strings.CutPrefix(line, urlLine); ok {
			up <- url
		}
	})
	if err != nil {
		return nil, "", err
	}
	select {
	case url := <-up:
		return c, url, nil
	case <-c.Done:
		return nil, "", c.Ended()
	case <-ctx.Done():
		c.Stop(0)
		return nil, "", ctx.Err()
	}
}

// FreePort finds a port that no outgoing connection gets. It is not reserved until a server uses it.
func FreePort() (port string, err error) {
	for range 100 {
		port = strconv.Itoa(12_000 + rand.IntN(8_000))
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			return port, l.Close()
		}
	}
	return "", err
}

// Patient is the option for connections of a loaded machine: the default gives up after 2 s.
var Patient = nats.Timeout(30 * time.Second)

// awaitJetStream waits until JetStream of n servers takes requests, for a cluster until a stream with n replicas can be
// created. By then it has elected its leader and knows its peers. One server is not asked for a stream: when its only
// stream is deleted it removes their directory a little later, and a stream created at that moment fails.
func awaitJetStream(ctx context.Context, url string, n int) error {
	nc, err := nats.Connect(url, Patient)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		// Without a leader there is no answer.
		try, cancel := context.WithTimeout(ctx, time.Second)
		if n == 1 {
			_, err = js.AccountInfo(try)
		} else {
			_, err = js.CreateOrUpdateStream(try, jetstream.StreamConfig{Name: "READY", Subjects: []string{"ready"},
				Replicas: n})
		}
		cancel()
		if err == nil && n == 1 {
			return nil
		}
		if err == nil {
			return js.DeleteStream(ctx, "READY")
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("JetStream of %d servers is not ready: %w", n, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// StopAll stops all of them, and gives each five seconds.
func StopAll(list []*Child) {
	for _, c := range list {
		_ = c.Cmd.Process.Signal(os.Interrupt)
	}
	for _, c := range list {
		c.Stop(5 * time.Second)
	}
}
