package deploy_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

var allHosts = workers.Policy{Hosts: []string{workers.AnyHost}}

// grantHosts stores policies by which the owners may have every host.
func grantHosts(t testing.TB, nc *nats.Conn, owners ...string) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	policies, err := deploy.OpenPolicies(t.Context(), js, deploy.Config{})
	require.NoError(t, err)
	for _, owner := range owners {
		_, err = policies.Set(t.Context(), owner, func(p *workers.Policy) { *p = allHosts })
		require.NoError(t, err)
	}
}

// deployRouted deploys a worker with routes.
func deployRouted(s *deploy.Store, owner, name string, n int, change func(*deploy.Request),
	routes ...string) (deploy.Deployed, error) {
	b := module(n)
	b.Spec.HTTP = &workers.HTTP{Routes: routes}
	req := deploy.Request{Owner: owner, Name: name, Bundle: b, Policy: allHosts}
	if change != nil {
		change(&req)
	}
	return s.Deploy(context.Background(), req, isFine)
}

// holders are the holders of all routes, like "a.test/* acme/w".
func holders(t testing.TB, nc *nats.Conn) (list []string) {
	t.Helper()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.BucketRoutes)
	require.NoError(t, err)
	keys, err := kv.ListKeys(t.Context())
	require.NoError(t, err)
	for key := range keys.Keys() {
		e, err := kv.Get(t.Context(), key)
		require.NoError(t, err)
		parts := strings.Split(string(e.Value()), `"`) // {"route":"R","owner":"O","worker":"W"}
		list = append(list, parts[3]+" "+parts[7]+"/"+parts[11])
	}
	slices.Sort(list)
	return list
}

func TestARouteIsOneWorkers(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	grantHosts(t, nc, "acme")
	_, err := deployRouted(s, "acme", "w", 1, nil, "a.test/*", "b.test/*")
	require.NoError(t, err)
	var taken *deploy.RouteTakenError
	_, err = deployRouted(s, "acme", "other", 1, nil, "c.test/*", "b.test/*")
	require.ErrorAs(t, err, &taken)
	require.EqualError(t, err, "acme/other is refused: route b.test/* is that of acme/w; deploy that one without it, or remove it")
	_, err = deployRouted(s, "beta", "w", 1, nil, "a.test/*")
	require.EqualError(t, err, "beta/w is refused: route a.test/* is a worker's of another owner", "it does not say whose")
	_, err = s.Installation(t.Context(), "beta", "w")
	require.ErrorIs(t, err, deploy.ErrNotFound, "nothing is stored")
	_, err = deployRouted(s, "beta", "w", 1, func(r *deploy.Request) { r.Policy.Hosts = []string{"a.test"} }, "x.test/*")
	var quota *deploy.QuotaError
	require.ErrorAs(t, err, &quota)
	require.ErrorContains(t, err, "http.routes[0] is x.test/*: the owner may not have host x.test")

	// The next version gives up what it does not name.
	_, err = deployRouted(s, "acme", "w", 2, nil, "a.test/*")
	require.NoError(t, err)
	_, err = deployRouted(s, "beta", "w", 1, nil, "b.test/*")
	require.NoError(t, err)
	require.Equal(t, []string{"a.test/* acme/w", "b.test/* beta/w", "c.test/* acme/other"}, holders(t, nc))

	// A former version does not come back when another worker has its route.
	_, _, err = s.Redeploy(t.Context(), "acme", "w", s.Rollback(t.Context(), "", false, deploy.Note{}))
	require.ErrorAs(t, err, &taken)
	require.Equal(t, "2=100", split(installation(t, s).Deployment))
	require.NoError(t, s.Remove(t.Context(), "beta", "w"))
	_, _, err = s.Redeploy(t.Context(), "acme", "w", s.Rollback(t.Context(), "", false, deploy.Note{}))
	require.NoError(t, err)
	require.Equal(t, []string{"a.test/* acme/w", "b.test/* acme/w", "c.test/* acme/other"}, holders(t, nc))

	// Neither a trial nor a version that is only stored takes a route, and one with a share does.
	for _, change := range []func(*deploy.Request){func(r *deploy.Request) { r.DryRun = true },
		func(r *deploy.Request) { r.UploadOnly = true }} {
		_, err = deployRouted(s, "acme", "w", 3, change, "d.test/*")
		require.NoError(t, err)
		require.NotContains(t, strings.Join(holders(t, nc), "\n"), "d.test")
	}
	_, _, err = s.Redeploy(t.Context(), "acme", "w", s.Promote(t.Context(), "3", 10, false, deploy.Note{}))
	require.NoError(t, err)
	require.Equal(t, []string{"a.test/* acme/w", "b.test/* acme/w", "c.test/* acme/other", "d.test/* acme/w"},
		holders(t, nc))
	_, _, err = s.Redeploy(t.Context(), "acme", "w", s.Promote(t.Context(), "3", 100, false, deploy.Note{}))
	require.NoError(t, err)
	require.Equal(t, []string{"c.test/* acme/other", "d.test/* acme/w"}, holders(t, nc))

	// Two ways to write a route are one route.
	_, err = deployRouted(s, "acme", "w", 4, nil, "d.test/%61dmin/*")
	require.NoError(t, err)
	_, err = deployRouted(s, "beta", "w", 1, nil, "d.test/admi%6e/*")
	require.ErrorAs(t, err, &taken)
	_, err = deployRouted(s, "acme", "w", 5, nil, "d.test/admin/*")
	require.NoError(t, err)
	require.Equal(t, []string{"c.test/* acme/other", "d.test/admin/* acme/w"}, holders(t, nc))
}

// A deploy that ended before its version was stored does not keep a route for ever.
func TestARouteThatNobodyNames(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.BucketRoutes)
	require.NoError(t, err)
	_, err = deployRouted(s, "acme", "w", 1, nil, "a.test/*")
	require.NoError(t, err)
	keys, err := kv.Keys(t.Context())
	require.NoError(t, err)
	for _, holder := range []string{`"owner":"beta","worker":"gone"`, `"owner":"acme","worker":"w"`} {
		_, err = kv.PutString(t.Context(), keys[0], `{"route":"a.test/*",`+holder+`,"deploys":{"x":"`+time.Now().
			Format(time.RFC3339)+`"}}`)
		require.NoError(t, err)
		_, err = deployRouted(s, "acme", "other", 1, nil, "a.test/*")
		var taken *deploy.RouteTakenError
		require.ErrorAs(t, err, &taken, "its deploy may be under way")
	}
	deploy.ForgetDeploysAtOnce(s)
	_, err = deployRouted(s, "acme", "other", 1, nil, "a.test/*")
	require.ErrorContains(t, err, "that of acme/w", "a worker that names it has it")
	_, err = kv.PutString(t.Context(), keys[0], `{"route":"a.test/*","owner":"beta","worker":"gone"}`)
	require.NoError(t, err)
	_, err = deployRouted(s, "acme", "other", 1, nil, "a.test/*")
	require.NoError(t, err)
	require.Equal(t, []string{"a.test/* acme/other"}, holders(t, nc))
}

// However many deploys take and give up routes at once, each active version has its routes, and no route has two
// workers.
func TestRoutesAtOnce(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	routes := []string{"a.test/*", "b.test/*", "c.test/*"}
	var running sync.WaitGroup
	for d := range 6 {
		running.Go(func() {
			name := "w" + strconv.Itoa(d%3)
			for i := range 12 {
				_, err := deployRouted(s, "acme", name, 100*d+i, nil, routes[(d+i)%3], strings.Replace(routes[(d+i/2)%3], "*", "x*",
					1))
				var taken *deploy.RouteTakenError
				var superseded *deploy.SupersededError
				if err != nil && !errors.As(err, &taken) && !errors.As(err, &superseded) && !strings.Contains(err.Error(),
					"was faster") {
					t.Error(err)
				}
			}
		})
	}
	running.Wait()
	// What is settled by the next change of each worker.
	held := map[string]string{}
	for _, h := range holders(t, nc) {
		route, worker, _ := strings.Cut(h, " ")
		held[route] = worker
	}
	list, err := s.List(t.Context(), "acme")
	require.NoError(t, err)
	for _, in := range list {
		for _, route := range in.Active().HTTP.Routes {
			require.Equal(t, in.Target(), held[route], route)
		}
	}
}

// Of two owners that may both have some routes, and deploy them at the same time, one has all of them. The other one is
// refused without the name of who has them, and nothing of its is stored. When each has taken one before the other,
// both are refused.
func TestRoutesOfTwoOwnersAtOnce(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	owners := []string{"acme", "beta"}
	stores := []*deploy.Store{open(t, nc, deploy.Config{}), open(t, nc, deploy.Config{})} // as of two processes
	third := open(t, nc, deploy.Config{})
	deploy.ForgetDeploysAtOnce(third)
	for i := range 40 {
		name, routes := "w"+strconv.Itoa(i), []string{"a" + strconv.Itoa(i) + ".test/*", "b" + strconv.Itoa(i) + ".test/*"}
		other := i % 2 // the one owner begins with the first route, and the other one with this one
		var errs [2]error
		var running sync.WaitGroup
		begin := make(chan struct{})
		for o, owner := range owners {
			running.Go(func() {
				<-begin
				_, errs[o] = deployRouted(stores[o], owner, name, i, nil, routes[o*other], routes[1-o*other])
			})
		}
		close(begin)
		running.Wait()
		winner := slices.Index(errs[:], nil)
		for o, owner := range owners {
			_, err := third.Installation(t.Context(), owner, name)
			if o == winner {
				require.NoError(t, err)
				continue
			}
			var taken *deploy.RouteTakenError
			require.ErrorAs(t, errs[o], &taken)
			require.Empty(t, taken.Holder, "it does not say whose")
			require.NotContains(t, errs[o].Error(), owners[1-o])
			require.ErrorIs(t, err, deploy.ErrNotFound)
		}
		if other == 0 {
			require.GreaterOrEqual(t, winner, 0)
		}
		want := []string{routes[0] + " gamma/" + name, routes[1] + " gamma/" + name}
		_, err := deployRouted(third, "gamma", name, i, nil, routes...)
		if winner >= 0 {
			want = []string{routes[0] + " " + owners[winner] + "/" + name, routes[1] + " " + owners[winner] + "/" + name}
			var taken *deploy.RouteTakenError
			require.ErrorAs(t, err, &taken)
		} else {
			require.NoError(t, err, "what the two have taken is free when their deploys are over for a while")
		}
		require.Equal(t, want,
			slices.DeleteFunc(holders(t, nc), func(h string) bool { return !strings.HasSuffix(h, "/"+name) }))
	}
}
