package deploy_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// killAt has the test binary deploy module(2) as acme/w to the server of deployChild, in the way that killedWay names.
// It kills itself before it publishes to this subject.
const (
	killAt    = "PINWHEEL_TEST_KILL_AT"
	killedWay = "PINWHEEL_TEST_KILLED_WAY"
)

var gradual = []workers.Step{{Percent: 10, For: workers.Millis(time.Minute)},
	{Percent: 50, For: workers.Millis(time.Minute)}}

// ways are the ways to deploy a version.
var ways = map[string]deploy.Request{
	"everything": {}, "a share": {Percent: 10}, "gradual": {Steps: gradual, Guard: workers.Guard{Failures: 2}},
	"upload only": {UploadOnly: true},
}

// deadly is a connection of a process that dies before it publishes to a subject.
type deadly struct {
	net.Conn
	publish string
}

// Dial makes it a dialer of nats.go.
func (d deadly) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	return deadly{conn, d.publish}, err
}

func (d deadly) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(d.publish)) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	return d.Conn.Write(b)
}

func deployUntilPublish(url, subject string) error {
	nc, err := natstest.Dial(url, nats.SetCustomDialer(deadly{publish: "PUB " + subject + " "}))
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	s, err := deploy.Open(context.Background(), js, deploy.Config{})
	if err != nil {
		return err
	}
	request := ways[os.Getenv(killedWay)]
	request.Owner, request.Name, request.Bundle = "acme", "w", module(2)
	_, err = s.Deploy(context.Background(), request, isFine)
	return errors.Join(errors.New("it was to die"), err)
}

// TestDeploysKilledBetweenTheirSteps kills a deploy before it stores the version, and between the version and the
// deployment. Each state that it leaves is named here, and the same deploy ends what it began.
func TestDeploysKilledBetweenTheirSteps(t *testing.T) {
	t.Parallel()
	const version, deployment = "$KV." + deploy.DefaultBucket + ".acme.w", "$KV." + deploy.BucketDeployments + ".acme.w"
	for _, c := range []struct {
		way, at  string
		versions int
		left     string // the split that the kill left
		after    string // that of the same deploy afterwards
	}{
		{"everything", version, 1, "1=100", "2=100"},
		{"everything", deployment, 2, "2=100", "2=100"}, // a version that gets everything is active when it is stored
		{"a share", version, 1, "1=100", "1=90 2=10"},
		{"a share", deployment, 2, "1=100", "1=90 2=10"},
		{"gradual", version, 1, "1=100", "1=90 2=10"},
		{"gradual", deployment, 2, "1=100", "1=90 2=10"},
		{"upload only", version, 1, "1=100", "1=100"},
	} {
		t.Run(fmt.Sprintf("%s, with %d versions", c.way, c.versions), func(t *testing.T) {
			t.Parallel()
			srv := natstest.Start(t)
			s := open(t, natstest.Connect(t, srv), deploy.Config{})
			r := newRoutes()
			run(t, s, r)
			_, err := stage(t, s, 1, deploy.Request{})
			require.NoError(t, err)

			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), deployChild+"="+srv.URL(), killAt+"="+c.at, killedWay+"="+c.way)
			child.Stderr = os.Stderr
			require.ErrorContains(t, child.Run(), "killed")
			in := installation(t, s)
			require.Len(t, in.Versions, c.versions)
			require.Equal(t, c.left, split(in.Deployment))
			require.Nil(t, in.Deployment.Rollout)
			r.awaitDeployment(t, "acme/w", in.Deployment)
			list, err := s.Deployments(t.Context(), "acme", "w")
			require.NoError(t, err)
			require.Len(t, list, 1, "the second one has no record")

			d, err := stage(t, s, 2, ways[c.way])
			require.NoError(t, err)
			require.Equal(t, c.versions == 1, d.Stored)
			require.Equal(t, 2, d.Worker.Number)
			require.Equal(t, c.after, split(d.Deployment))
			require.Equal(t, c.way == "gradual", d.Deployment.Rollout.Running())
			require.Equal(t, d.Deployment.Split, installation(t, s).Deployment.Split)
			r.awaitDeployment(t, "acme/w", installation(t, s).Deployment)
		})
	}
}

// atOnce makes these deploys of acme/w at the same time, each with a store of its own. The nth deploys
// module(modules[n]).
func atOnce(t *testing.T, url string, modules []int, requests []deploy.Request) (done []deploy.Deployed, errs []error) {
	t.Helper()
	done, errs = make([]deploy.Deployed, len(requests)), make([]error, len(requests))
	begin := make(chan struct{})
	var running sync.WaitGroup
	for i, request := range requests {
		nc, err := natstest.Dial(url)
		require.NoError(t, err)
		defer nc.Close()
		s := open(t, nc, deploy.Config{})
		running.Go(func() {
			<-begin
			done[i], errs[i] = stage(t, s, modules[i], request)
		})
	}
	close(begin)
	running.Wait()
	return done, errs
}

// TestStagedDeploysAtOnce makes deploys with shares and steps at the same time.
//
// Of several versions one gets its share, with the rollout of its own deploy. The others are refused and have none,
// whether they are stored or not. The same version by several deployers is stored once, and has the share of the last
// deployment.
func TestStagedDeploysAtOnce(t *testing.T) {
	t.Parallel()
	requests := []deploy.Request{
		{Percent: 10, Note: deploy.Note{By: "a"}}, {Steps: gradual, Note: deploy.Note{By: "b"}},
		{Percent: 20, Note: deploy.Note{By: "c"}}, {Steps: gradual[1:], Note: deploy.Note{By: "d"}},
	}
	begin := func(t *testing.T) (url string, s *deploy.Store, all [2]*routes) {
		srv := natstest.Start(t)
		for i := range all {
			all[i] = newRoutes()
			run(t, open(t, natstest.Connect(t, srv), deploy.Config{}), all[i])
		}
		s = open(t, natstest.Connect(t, srv), deploy.Config{})
		_, err := stage(t, s, 1, deploy.Request{})
		require.NoError(t, err)
		return srv.URL(), s, all
	}
	t.Run("of several versions", func(t *testing.T) {
		t.Parallel()
		url, s, all := begin(t)
		before := installation(t, s).Deployment
		for round := range 6 {
			next := 10 * (round + 1)
			done, errs := atOnce(t, url, []int{next, next + 1, next + 2, next + 3}, requests)
			won := slices.Index(errs, nil)
			require.NotEqual(t, -1, won, "%v", errs)
			for i, err := range errs {
				if i != won {
					require.ErrorAs(t, err, new(*deploy.ChangeError))
					require.ErrorContains(t, err, "100 % first")
				}
			}
			in := installation(t, s)
			d, winner := in.Deployment, done[won].Worker
			require.Equal(t, before.Number+1, d.Number, "one deployment was made")
			share := requests[won].Percent
			if len(requests[won].Steps) > 0 {
				share = requests[won].Steps[0].Percent
			}
			require.Equal(t, []workers.Share{{Version: before.Base(), Percent: 100 - share},
				{Version: winner.Version, Percent: share}}, d.Split)
			require.Equal(t, requests[won].By, d.By)
			require.Equal(t, len(requests[won].Steps) > 0, d.Rollout.Running(), "the rollout is that of its own deploy")
			if d.Rollout != nil {
				require.Equal(t, requests[won].Steps, d.Rollout.Steps)
			}
			for i, w := range in.Versions {
				require.Equal(t, i+1, w.Number, "no number is given twice, and none is left out")
			}
			for _, r := range all {
				r.awaitDeployment(t, "acme/w", d)
			}
			before = redeploy(t, s, s.Promote(t.Context(), winner.Version, 100, false, deploy.Note{}))
		}
	})
	t.Run("of one version", func(t *testing.T) {
		t.Parallel()
		url, s, all := begin(t)
		for round := range 6 {
			before := installation(t, s)
			next := 10 * (round + 1)
			done, errs := atOnce(t, url, []int{next, next, next}, []deploy.Request{requests[0], requests[2], requests[0]})
			stored := 0
			for i, err := range errs {
				require.NoError(t, err)
				require.Equal(t, done[0].Worker.Version, done[i].Worker.Version)
				if done[i].Stored {
					stored++
				}
			}
			require.Equal(t, 1, stored)
			in := installation(t, s)
			require.Len(t, in.Versions, len(before.Versions)+1)
			last := slices.MaxFunc(done, func(a, b deploy.Deployed) int { return a.Deployment.Number - b.Deployment.Number })
			require.Equal(t, last.Deployment.Split, in.Deployment.Split, "each deploy was made after another, and the last one holds")
			require.Equal(t, last.Deployment.Number, in.Deployment.Number)
			require.Equal(t, before.Deployment.Base(), in.Deployment.Base())
			require.Contains(t, []float64{10, 20}, in.Deployment.PercentOf(done[0].Worker.Version))
			for _, r := range all {
				r.awaitDeployment(t, "acme/w", in.Deployment)
			}
			redeploy(t, s, s.Promote(t.Context(), done[0].Worker.Version, 100, false, deploy.Note{}))
		}
	})
}
