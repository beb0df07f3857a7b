package deploy_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
	"github.com/pinwheel-run/pinwheel/internal/test/parallel"
)

// split is the split of a worker, like "1=90 2=10", by the numbers of the versions.
func split(d workers.Deployment) string {
	var parts []string
	for _, s := range d.Split {
		number, _, _ := strings.Cut(s.Version, "-")
		parts = append(parts, fmt.Sprintf("%s=%v", number, s.Percent))
	}
	return strings.Join(parts, " ")
}

// stage deploys acme/w with the nth module as req says.
func stage(t testing.TB, s *deploy.Store, n int, req deploy.Request) (deploy.Deployed, error) {
	t.Helper()
	req.Owner, req.Name, req.Bundle = "acme", "w", module(n)
	return s.Deploy(t.Context(), req, isFine)
}

// redeploy changes the deployment of acme/w and returns it.
func redeploy(t testing.TB, s *deploy.Store, c deploy.Change) workers.Deployment {
	t.Helper()
	d, changed, err := s.Redeploy(t.Context(), "acme", "w", c)
	require.NoError(t, err)
	require.True(t, changed)
	return d
}

func installation(t testing.TB, s *deploy.Store) workers.Installation {
	t.Helper()
	in, err := s.Installation(t.Context(), "acme", "w")
	require.NoError(t, err)
	return in
}

func TestDeploymentsOfAWorker(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	note := deploy.Note{By: "ada", Message: "first"}
	d, err := stage(t, s, 1, deploy.Request{Note: note, Tag: "c0ffee"})
	require.NoError(t, err)
	require.Equal(t, []any{"1=100", 1, "ada", "first", "c0ffee"}, []any{split(d.Deployment), d.Deployment.Number,
		d.Deployment.By, d.Deployment.Message, d.Worker.Tag})

	d, err = stage(t, s, 2, deploy.Request{UploadOnly: true})
	require.NoError(t, err)
	require.True(t, d.Stored)
	require.Equal(t, "1=100", split(installation(t, s).Deployment), "it is stored, and not active")
	d, err = stage(t, s, 2, deploy.Request{UploadOnly: true})
	require.NoError(t, err)
	require.False(t, d.Stored)

	next := redeploy(t, s, s.Promote(t.Context(), "2", 12.5, false, note))
	require.Equal(t, "1=87.5 2=12.5", split(next))
	require.Equal(t, "2=100", split(redeploy(t, s, s.Promote(t.Context(), d.Worker.Version, 100, false, note))))
	_, changed, err := s.Redeploy(t.Context(), "acme", "w", s.Promote(t.Context(), "2", 100, false, note))
	require.NoError(t, err)
	require.False(t, changed)

	require.Equal(t, "1=100", split(redeploy(t, s, s.Rollback(t.Context(), "", false, note))))
	d, err = stage(t, s, 3, deploy.Request{Percent: 10})
	require.NoError(t, err)
	require.Equal(t, "1=90 3=10", split(d.Deployment), "a rollback makes no number twice")
	require.Equal(t, "1=100", split(redeploy(t, s, s.Rollback(t.Context(), "", false, note))),
		"of a split, the version before")
	d, err = stage(t, s, 3, deploy.Request{})
	require.NoError(t, err)
	require.False(t, d.Stored, "the newest version is not stored again")
	require.Equal(t, "3=100", split(d.Deployment))

	list, err := s.Deployments(t.Context(), "acme", "w")
	require.NoError(t, err)
	var splits []string
	for i, d := range list {
		require.Equal(t, i+1, d.Number)
		splits = append(splits, split(d))
	}
	require.Equal(t, []string{"1=100", "1=87.5 2=12.5", "2=100", "1=100", "1=90 3=10", "1=100", "3=100"}, splits)

	all, err := s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.Equal(t, "3=100", split(all[0].Deployment))
	redeploy(t, s, s.Rollback(t.Context(), "2", false, note))
	all, err = s.List(t.Context(), "acme")
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, 2, all[0].Active().Number, "also where an older version is active")
	w, err := s.Get(t.Context(), "acme", "w", "")
	require.NoError(t, err)
	require.Equal(t, module(2).Code, w.Code)

	require.NoError(t, s.Remove(t.Context(), "acme", "w"))
	d, err = stage(t, s, 5, deploy.Request{})
	require.NoError(t, err)
	require.Equal(t, []any{"1=100", 1}, []any{split(d.Deployment), d.Deployment.Number},
		"nothing is left of the worker before")
}

// A step of a rollout says which split held before it. What is not a step does not.
func TestStepsKeepTheSplitBefore(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	before := func(d workers.Deployment) string {
		stored := installation(t, s).Deployment
		require.Equal(t, d.Before, stored.Before)
		require.Equal(t, len(d.Before) > 0, stored.Effective().Equal(stored.Stored.Add(workers.StepDelay)))
		return split(workers.Deployment{Split: d.Before})
	}
	steps, err := workers.ParseSteps("10%,40%")
	require.NoError(t, err)
	_, err = stage(t, s, 1, deploy.Request{})
	require.NoError(t, err)
	d, err := stage(t, s, 2, deploy.Request{Steps: steps})
	require.NoError(t, err)
	require.Equal(t, "1=100", before(d.Deployment))
	require.Equal(t, "1=90 2=10", before(redeploy(t, s, deploy.Advance(d.Deployment, ""))))
	require.Empty(t, before(redeploy(t, s, deploy.SetAlias("next", "2"))), "an alias moves no key again")
	next := redeploy(t, s, deploy.Advance(installation(t, s).Deployment, ""))
	require.Equal(t, "2=100", split(next))
	require.Equal(t, "1=60 2=40", before(next))
	require.True(t, next.Names(next.Before[0].Version), "the version before is still loaded")
	_, err = stage(t, s, 3, deploy.Request{Steps: steps})
	require.NoError(t, err)
	require.Empty(t, before(redeploy(t, s, deploy.Advance(installation(t, s).Deployment, "bad"))),
		"what goes back does so at once")
	require.Empty(t, before(redeploy(t, s, s.Promote(t.Context(), "3", 20, false, deploy.Note{}))))
}

func TestChangesThatDoNotFit(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	var note deploy.Note
	refused := func(c deploy.Change, want string) {
		t.Helper()
		_, changed, err := s.Redeploy(t.Context(), "acme", "w", c)
		require.ErrorContains(t, err, want)
		require.False(t, changed)
	}
	refused(s.Promote(t.Context(), "1", 100, false, note), "no such worker: acme/w")
	_, err := stage(t, s, 1, deploy.Request{UploadOnly: true})
	require.NoError(t, err)
	require.Empty(t, installation(t, s).Deployment.Split)
	refused(s.Promote(t.Context(), "1", 10, false, note), "no version is active")
	refused(s.Rollback(t.Context(), "", false, note), "no version had everything before: name the one to go back to")
	_, err = stage(t, s, 2, deploy.Request{Percent: 10})
	require.ErrorContains(t, err, "no version is active")
	versions, err := s.Versions(t.Context(), "acme", "w")
	require.NoError(t, err)
	require.Len(t, versions, 1, "what cannot be activated is not stored")

	redeploy(t, s, s.Promote(t.Context(), "1", 100, false, note))
	_, err = stage(t, s, 2, deploy.Request{Percent: 10})
	require.NoError(t, err)
	_, err = stage(t, s, 3, deploy.Request{Percent: 10})
	require.ErrorContains(t, err, "share the events: give one of them 100 % first")
	_, err = stage(t, s, 3, deploy.Request{Steps: []workers.Step{{Percent: 10, For: workers.Millis(time.Minute)}}})
	require.ErrorContains(t, err, "has 10 % already: give one of the two 100 % first")
	refused(s.Promote(t.Context(), "1", 10, false, note), "name the new version")
	refused(s.Promote(t.Context(), "7", 10, false, note), `there is no version "7", or no longer`)
	refused(s.Promote(t.Context(), "2", 0, false, note), "percentage 0: it is above 0, at most 100")
	refused(s.Promote(t.Context(), "2", 0.001, false, note), "two digits after the point")
	for _, name := range []string{"", "1", "7-a", "A", "a--b", "-a", "a_b", strings.Repeat("a", 31)} {
		refused(deploy.SetAlias(name, "1"), "alias "+strconv.Quote(name)+": it begins with a letter")
	}
	refused(deploy.SetAlias("next", "9"), `there is no version "9"`)
	refused(deploy.SetAlias("next", ""), `there is no alias "next"`)
}

// A version that names something that is gone comes back only by force. What it names is there at first.
func TestARollbackNeedsWhatItsVersionNames(t *testing.T) {
	t.Parallel()
	type world struct {
		*deploy.Store
		policies *deploy.Policies
		secrets  *deploy.Secrets
	}
	grant := workers.Policy{NATSPublish: []string{"orders.>"}, NATSRequest: []string{"billing.*"},
		Hosts: []string{"*.shop.test"}}
	removeJobs := func(t *testing.T, w world) { require.NoError(t, w.Remove(t.Context(), "acme", "jobs")) }
	narrow := func(change func(p *workers.Policy)) func(*testing.T, world) {
		return func(t *testing.T, w world) {
			_, err := w.policies.Set(t.Context(), "acme", change)
			require.NoError(t, err)
		}
	}
	for name, c := range map[string]struct {
		spec workers.Spec
		lose func(*testing.T, world)
		want string
	}{
		"queue": {
			workers.Spec{Bindings: workers.Bindings{Queues: map[string]string{"JOBS": "jobs", "SELF": "w"}}}, removeJobs,
			"worker acme/jobs, which its env.JOBS needs, is gone",
		},
		"service": {
			workers.Spec{Bindings: workers.Bindings{Services: map[string]string{"JOBS": "jobs", "SELF": "w#Named"}}}, removeJobs,
			"worker acme/jobs, which its env.JOBS needs, is gone",
		},
		"entrypoint": {
			workers.Spec{Bindings: workers.Bindings{Services: map[string]string{"JOBS": "jobs#Named"}}}, removeJobs,
			"worker acme/jobs, which its env.JOBS needs, is gone",
		},
		"dead letters": {
			workers.Spec{OnDead: &events.DeadHook{Worker: "jobs"}}, removeJobs,
			"worker acme/jobs, which its onDeadLetter.worker needs, is gone",
		},
		"publish": {
			workers.Spec{
				Bindings: workers.Bindings{NATS: map[string]workers.NATSSubjects{"BUS": {Publish: []string{"orders.new"}}}}},
			narrow(func(p *workers.Policy) { p.NATSPublish = []string{"orders.old"} }),
			"nats.BUS.publish[0] is orders.new, which the owner is not granted",
		},
		"request": {
			workers.Spec{Bindings: workers.Bindings{NATS: map[string]workers.NATSSubjects{"BUS": {
				Publish: []string{"orders.new"},
				Request: []string{"billing.pay"}}}}},
			narrow(func(p *workers.Policy) { p.NATSRequest = nil }),
			"nats.BUS.request[0] is billing.pay, which the owner is not granted",
		},
		"host": {
			workers.Spec{HTTP: &workers.HTTP{Routes: []string{"a.shop.test/*", "b.shop.test/*"}}},
			narrow(func(p *workers.Policy) { p.Hosts = []string{"a.shop.test"} }),
			"http.routes[1] is b.shop.test/*: the owner may not have host b.shop.test",
		},
		"no policy": {
			workers.Spec{HTTP: &workers.HTTP{Routes: []string{"a.shop.test/*"}}},
			func(t *testing.T, w world) { require.NoError(t, w.policies.Remove(t.Context(), "acme")) },
			"http.routes[0] is a.shop.test/*: the owner may not have host a.shop.test",
		},
		"secret": {
			workers.Spec{Secrets: []string{"KEY", "TOKEN"}},
			func(t *testing.T, w world) {
				require.NoError(t, w.secrets.Remove(t.Context(), secretName("acme", "w", "TOKEN")))
			},
			"secret TOKEN, which its env.TOKEN needs, is gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			nc := natstest.Connect(t, natstest.Start(t))
			js, err := jetstream.New(nc)
			require.NoError(t, err)
			w := world{Store: open(t, nc, deploy.Config{})}
			w.policies, err = deploy.OpenPolicies(t.Context(), js, deploy.Config{})
			require.NoError(t, err)
			w.secrets, err = deploy.OpenSecrets(t.Context(), js, deploy.Config{})
			require.NoError(t, err)
			// What another owner has does not count.
			for _, owner := range []string{"acme", "beta"} {
				mustDeploy(t, w.Store, owner, "jobs", module(1))
				_, err = w.policies.Set(t.Context(), owner, func(p *workers.Policy) { *p = grant })
				require.NoError(t, err)
				require.NoError(t, w.secrets.Put(t.Context(), secretName(owner, "w", "TOKEN"), []byte("sealed")))
				require.NoError(t, w.secrets.Put(t.Context(), secretName(owner, "", "KEY"), []byte("sealed")))
			}
			b := module(1)
			b.Spec = c.spec
			_, err = w.Deploy(t.Context(), deploy.Request{Owner: "acme", Name: "w", Bundle: b, Policy: grant}, isFine)
			require.NoError(t, err)
			_, err = stage(t, w.Store, 2, deploy.Request{})
			require.NoError(t, err)
			redeploy(t, w.Store, w.Rollback(t.Context(), "1", false, deploy.Note{}))
			redeploy(t, w.Store, w.Promote(t.Context(), "2", 100, false, deploy.Note{}))

			c.lose(t, w)
			for _, change := range []deploy.Change{w.Rollback(t.Context(), "", false, deploy.Note{}),
				w.Promote(t.Context(), "1", 10, false, deploy.Note{})} {
				_, changed, err := w.Redeploy(t.Context(), "acme", "w", change)
				var gone *deploy.GoneError
				require.ErrorAs(t, err, &gone)
				require.Regexp(t, `^acme/w: version 1-\w+ is not activated: `+regexp.QuoteMeta(c.want), err)
				require.False(t, changed)
			}
			require.Equal(t, "2=100", split(installation(t, w.Store).Deployment))
			require.Equal(t, "1=100", split(redeploy(t, w.Store, w.Rollback(t.Context(), "", true, deploy.Note{}))))
		})
	}
}

func TestAVersionThatIsNamedIsNotDropped(t *testing.T) {
	t.Parallel()
	s := newStore(t, deploy.Config{})
	_, err := stage(t, s, 0, deploy.Request{})
	require.NoError(t, err)
	redeploy(t, s, deploy.SetAlias("stable", "1"))
	for n := 1; n < deploy.History; n++ {
		_, err := stage(t, s, n, deploy.Request{})
		require.NoError(t, err)
	}
	_, err = stage(t, s, 100, deploy.Request{})
	require.ErrorContains(t, err, "has the alias stable, and would be dropped: 64 versions are kept; promote another one, or remove the alias")
	require.Len(t, installation(t, s).Versions, deploy.History)

	// A process has the code of ten versions, and of those that are named.
	r := newRoutes()
	run(t, s, r)
	in := r.has["acme/w"]
	require.Len(t, in.Versions, deploy.Loaded+1)
	require.Equal(t, 1, in.Versions[0].Number)
	require.Equal(t, module(0).Code, in.Versions[0].Code)
	redeploy(t, s, deploy.SetAlias("stable", ""))
	redeploy(t, s, s.Rollback(t.Context(), "20", false, deploy.Note{}))
	r.await(t, "acme/w", in.Deployment.Base(), installation(t, s).Deployment.Base())
	in = r.get("acme/w")
	require.Equal(t, module(19).Code, in.Active().Code, "it is loaded before it is active")
	require.Len(t, in.Versions, deploy.Loaded+1)
	require.Nil(t, in.Version(installation(t, s).Versions[0].Version))
	_, err = stage(t, s, 100, deploy.Request{})
	require.NoError(t, err)
}

// deployChild is a process that deploys until it is killed: a version with everything, then one with a share, and so
// on.
const deployChild = "PINWHEEL_TEST_DEPLOY"

func TestMain(m *testing.M) {
	if url := os.Getenv(deployChild); url != "" {
		if dir := os.Getenv(filesChild); dir != "" {
			if err := deployDirectory(url, dir); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			os.Exit(0)
		}
		if subject := os.Getenv(killAt); subject != "" {
			fmt.Fprintln(os.Stderr, deployUntilPublish(url, subject))
			os.Exit(1)
		}
		fmt.Fprintln(os.Stderr, deployUntilKilled(url))
		os.Exit(1)
	}
	parallel.AtOnce(parallel.Fleets)
	os.Exit(m.Run())
}

func deployUntilKilled(url string) error {
	nc, err := natstest.Dial(url)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := deploy.Open(ctx, js, deploy.Config{})
	if err != nil {
		return err
	}
	for n := time.Now().Nanosecond(); ; n += 2 {
		request := deploy.Request{Owner: "acme", Name: "w", Bundle: module(n)}
		if _, err := s.Deploy(ctx, request, isFine); err != nil {
			return err
		}
		request.Bundle, request.Percent, request.Note = module(n+1), 10, deploy.Note{Message: "a share"}
		if _, err := s.Deploy(ctx, request, isFine); err != nil {
			return err
		}
	}
}

// TestKilledDeploysAreNeverHalfDone kills a process that deploys, at any moment; TestDeploysKilledBetweenTheirSteps
// does so at each one that matters. A version with everything is active from
// the moment it is stored. One with a share is not active before its deployment is stored. The next deploy works.
func TestKilledDeploysAreNeverHalfDone(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	srv := natstest.Start(t)
	s := open(t, natstest.Connect(t, srv), deploy.Config{})
	r := newRoutes()
	run(t, s, r)
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	for range 12 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), deployChild+"="+srv.URL())
		child.Stderr = os.Stderr
		require.NoError(t, child.Start())
		ended := make(chan error, 1)
		go func() { ended <- child.Wait() }()
		// Killed when so many messages have been stored: versions and deployments take turns.
		seen := make(chan struct{}, 100)
		left := 1 + random.IntN(12)
		watch := func(bucket string) jetstream.KeyWatcher {
			kv, err := js.KeyValue(t.Context(), bucket)
			require.NoError(t, err)
			w, err := kv.WatchAll(t.Context(), jetstream.UpdatesOnly())
			require.NoError(t, err)
			go func() {
				for range w.Updates() {
					select {
					case seen <- struct{}{}:
					default:
					}
				}
			}()
			return w
		}
		a, b := watch(deploy.DefaultBucket), watch(deploy.BucketDeployments)
		for ; left > 0; left-- {
			select {
			case <-seen:
			case err := <-ended:
				require.FailNow(t, "the process ended before it was killed", err)
			}
		}
		require.NoError(t, child.Process.Kill())
		require.ErrorContains(t, <-ended, "killed")
		require.NoError(t, a.Stop())
		require.NoError(t, b.Stop())

		in := installation(t, s)
		newest := in.Versions[len(in.Versions)-1]
		staged := newest.Message == "a share"
		switch d := in.Deployment; {
		case !staged:
			require.Equal(t, fmt.Sprintf("%d=100", newest.Number), split(d))
		case d.Candidate().Version != "":
			require.Equal(t, fmt.Sprintf("%d=90 %d=10", newest.Number-1, newest.Number), split(d))
		default:
			require.Equal(t, fmt.Sprintf("%d=100", newest.Number-1), split(d))
		}
		r.awaitDeployment(t, "acme/w", in.Deployment)
		d, err := stage(t, s, int(random.Int32()), deploy.Request{})
		require.NoError(t, err)
		require.Equal(t, newest.Number+1, d.Worker.Number)
		r.awaitDeployment(t, "acme/w", d.Deployment)
	}
}

// TestChangesAtOnce makes changes from several processes at the same time. Each takes effect after the other, no number
// of a deployment is given twice, and all processes end with the same.
func TestChangesAtOnce(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	var all [3]*routes
	for i := range all {
		all[i] = newRoutes()
		run(t, open(t, natstest.Connect(t, srv), deploy.Config{}), all[i])
	}
	first := open(t, natstest.Connect(t, srv), deploy.Config{})
	for n := range 5 {
		_, err := stage(t, first, n, deploy.Request{})
		require.NoError(t, err)
	}
	var running sync.WaitGroup
	numbers := make(chan int, 100)
	for i := range 4 {
		s := open(t, natstest.Connect(t, srv), deploy.Config{})
		running.Go(func() {
			for n := range 6 {
				version := strconv.Itoa(1 + n%5)
				change := deploy.SetAlias(fmt.Sprintf("a%d", i), version)
				if i == 0 {
					change = s.Promote(t.Context(), version, 100, false, deploy.Note{})
				}
				d, changed, err := s.Redeploy(t.Context(), "acme", "w", change)
				if err != nil {
					t.Error(err)
				} else if changed {
					numbers <- d.Number
				}
			}
		})
	}
	running.Wait()
	close(numbers)
	var got []int
	for n := range numbers {
		got = append(got, n)
	}
	slices.Sort(got)
	require.Len(t, slices.Compact(slices.Clone(got)), len(got), "%v", got)
	in := installation(t, first)
	require.Equal(t, got[len(got)-1], in.Deployment.Number)
	require.Len(t, in.Deployment.Aliases, 3)
	for _, r := range all {
		r.awaitDeployment(t, "acme/w", in.Deployment)
	}
}

// TestFormerReleasesBesideThisOne stores versions as a former release does, which knows no deployments.
func TestFormerReleasesBesideThisOne(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	nc := natstest.Connect(t, srv)
	s := open(t, nc, deploy.Config{})
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	r := newRoutes()
	run(t, s, r)
	v1, err := stage(t, s, 1, deploy.Request{})
	require.NoError(t, err)
	entry, err := kv.Get(t.Context(), "acme.w")
	require.NoError(t, err)
	require.Contains(t, string(entry.Value()), `{"format":1,`, "a former release reads it")
	v2, err := stage(t, s, 2, deploy.Request{UploadOnly: true})
	require.NoError(t, err)
	staged, err := kv.Get(t.Context(), "acme.w")
	require.NoError(t, err)
	require.Contains(t, string(staged.Value()), `{"format":2,`, "a former release goes on with what it has")
	require.Equal(t, v1.Worker.Version, r.get("acme/w").Deployment.Base())

	// Its deploy is active, as always.
	older := strings.Replace(string(entry.Value()), `"number":1`, `"number":3`, 1)
	_, err = kv.PutString(t.Context(), "acme.w", older)
	require.NoError(t, err)
	v3 := "3-" + v1.Worker.Hash[:12]
	r.await(t, "acme/w", v1.Worker.Version, v3)
	require.Equal(t, []any{"3=100", 2}, []any{split(installation(t, s).Deployment), installation(t, s).Deployment.Number})
	redeploy(t, s, s.Rollback(t.Context(), "2", false, deploy.Note{}))
	r.await(t, "acme/w", v1.Worker.Version, v3, v2.Worker.Version)
	// It removes only the versions. What it deploys then is a new worker.
	require.NoError(t, kv.Purge(t.Context(), "acme.w"))
	r.await(t, "acme/w")
	_, err = kv.PutString(t.Context(), "acme.w", string(entry.Value()))
	require.NoError(t, err)
	r.await(t, "acme/w", v1.Worker.Version)
	require.Equal(t, 1, installation(t, s).Deployment.Number)
}

// TestADeploymentHoldsWithoutItsRecord deletes what no one should. The processes go on with what they have.
func TestADeploymentHoldsWithoutItsRecord(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	s := open(t, nc, deploy.Config{CheckEvery: 20 * time.Millisecond})
	v1, err := stage(t, s, 1, deploy.Request{})
	require.NoError(t, err)
	v2, err := stage(t, s, 2, deploy.Request{})
	require.NoError(t, err)
	redeploy(t, s, s.Rollback(t.Context(), "", false, deploy.Note{}))
	r := newRoutes()
	run(t, s, r)
	require.Equal(t, v1.Worker.Version, r.get("acme/w").Deployment.Base())
	kv, err := js.KeyValue(t.Context(), deploy.BucketDeployments)
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "acme.w", `{"format":9}`)
	require.NoError(t, err)
	_, err = s.Installation(t.Context(), "acme", "w")
	require.ErrorContains(t, err, "deployment record at acme.w: it has format 9: this process reads 1")
	require.NoError(t, js.DeleteKeyValue(t.Context(), deploy.BucketDeployments))
	s = open(t, nc, deploy.Config{})
	mustDeploy(t, s, "acme", "other", module(1))
	r.await(t, "acme/other", "1-"+mustHash(t, module(1)))
	require.Equal(t, v1.Worker.Version, r.get("acme/w").Deployment.Base(), "the record is gone, but no one deleted it")

	// A deletion is meant: without a record the newest version is active.
	d := redeploy(t, s, s.Promote(t.Context(), "1", 100, false, deploy.Note{}))
	r.awaitDeployment(t, "acme/w", d)
	kv, err = js.KeyValue(t.Context(), deploy.BucketDeployments)
	require.NoError(t, err)
	require.NoError(t, kv.Delete(t.Context(), "acme.w"))
	r.await(t, "acme/w", v1.Worker.Version, v2.Worker.Version)
	d = redeploy(t, s, s.Rollback(t.Context(), "1", false, deploy.Note{}))
	r.awaitDeployment(t, "acme/w", d)
}

func mustHash(t testing.TB, b *bundle.Bundle) string {
	t.Helper()
	own := *b
	own.Mode = workers.Pinned
	hash, err := own.Hash()
	require.NoError(t, err)
	return hash[:12]
}

// TestAChangeThatIsOvertaken changes the deployment of a worker of which a version is stored meanwhile.
func TestAChangeThatIsOvertaken(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.Start(t))
	s := open(t, nc, deploy.Config{})
	for n := range 2 {
		_, err := stage(t, s, n, deploy.Request{})
		require.NoError(t, err)
	}
	overtaken := func(store func()) deploy.Change {
		first := true
		return func(in workers.Installation, former []workers.Deployment) (workers.Deployment, error) {
			if first {
				first = false
				store()
			}
			return s.Promote(t.Context(), "1", 100, false, deploy.Note{})(in, former)
		}
	}
	d := redeploy(t, s, overtaken(func() {
		_, err := stage(t, s, 2, deploy.Request{})
		require.NoError(t, err)
	}))
	require.Equal(t, []any{"1=100", 4}, []any{split(d), d.Number}, "it was made again with what the other one left")

	// A former release stores a version only. It came last, so it is active.
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	kv, err := js.KeyValue(t.Context(), deploy.DefaultBucket)
	require.NoError(t, err)
	redeploy(t, s, s.Promote(t.Context(), "2", 100, false, deploy.Note{}))
	_, _, err = s.Redeploy(t.Context(), "acme", "w", overtaken(func() {
		e, err := kv.Get(t.Context(), "acme.w")
		require.NoError(t, err)
		_, err = kv.PutString(t.Context(), "acme.w", strings.Replace(string(e.Value()), `"number":3`, `"number":4`, 1))
		require.NoError(t, err)
	}))
	var superseded *deploy.SupersededError
	require.ErrorAs(t, err, &superseded)
	require.Equal(t, "4=100", split(installation(t, s).Deployment))
	require.Equal(t, installation(t, s).Deployment.Base(), superseded.Version)
}
