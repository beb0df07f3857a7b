package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// noise is text that no compression makes smaller, and another one for each n.
func noise(n byte, bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.NewChaCha8([32]byte{n}).Read(b)
	return string(b)
}

// The server refuses files for which the bucket has no room, whoever stores them. An owner may have as much of it as is
// free for all others.
func TestAFullBucketOfFilesRefusesThem(t *testing.T) {
	t.Parallel()
	url := natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	h := openFleet(t, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes = url, "fleet", "fleet-secret", config.List{"_INBOX.{owner}."}
		c.MaxBytes, c.AssetsMaxBytes = 256<<20, 1<<20
	})
	site := func(data string) (dir string) {
		return project(t, "", map[string]string{"pinwheel.json": `{"name": "site", "assets": {"directory": "dist"}}`,
			"dist/a.bin": data})
	}
	code, out := h.deployBy("acme", site(noise(1, 450<<10)))
	require.Zero(t, code, out)
	before := h.fileKeys()
	acme, beta := as(t, url, "acme"), as(t, url, "beta")
	failure := storeAsOwner(t, acme, "acme", storing(t, acme, "acme", noise(2, 300<<10)))
	require.True(t, strings.HasPrefix(failure, "403 owner acme has "), failure)
	require.Contains(t, failure, "in bucket PINWHEEL_ASSETS and needs ")
	require.Empty(t, storeAsOwner(t, beta, "beta", storing(t, beta, "beta", noise(3, 100<<10))))
	require.Empty(t, storeAsOwner(t, beta, "beta", storing(t, beta, "beta", noise(4, 470<<10))),
		"what no version has makes room")
	failure = storeAsOwner(t, beta, "beta", storing(t, beta, "beta", noise(6, 600<<10)))
	require.True(t, strings.HasPrefix(failure, "507 bucket PINWHEEL_ASSETS is full and may have 1MiB: remove workers"), failure)
	require.Contains(t, failure, "'pinwheel workers rm', or have an operator raise PINWHEEL_ASSETS_MAX_BYTES")
	require.ElementsMatch(t, append(before, "beta.deploys", "beta.stored"), h.fileKeys(), "what no version has is gone")

	asFleet := func() (code int, out string) {
		code, out, errs := h.command("", "deploy", site(noise(5, 570<<10)), "--owner", "beta")
		return code, out + errs
	}
	code, out = asFleet()
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "bucket PINWHEEL_ASSETS is full and may have 1MiB")
	_, err := h.fleet.Workers().Get(t.Context(), "beta", "site", "")
	require.ErrorIs(t, err, deploy.ErrNotFound)
	require.NoError(t, h.fleet.Workers().Remove(t.Context(), "acme", "site"))
	code, out = asFleet()
	require.Zero(t, code, out)
}

// A fleet of an earlier release has buckets without bounds, and keeps them until 'pinwheel resources apply' gives it
// those of this one. Nothing that is stored goes, also where it is more than the bound.
func TestAnOlderFleetGetsBounds(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	js, err := jetstream.New(natstest.Connect(t, srv))
	require.NoError(t, err)
	cfg := testConfig(t)
	cfg.MaxBytes, cfg.DeadLetterBytes = 64<<20, 64<<20
	cfg.WorkersMaxBytes, cfg.AssetsMaxBytes = 64<<20, 1<<20
	bounds := map[string]int64{}
	for _, r := range inventory.Resources(cfg, 1<<20) {
		switch {
		case r.Bucket != nil:
			bounds[r.StreamName()] = r.Bucket.MaxBytes
			older := *r.Bucket
			older.MaxBytes = 0
			_, err = js.CreateKeyValue(t.Context(), older)
		case r.Objects != nil:
			bounds[r.StreamName()] = r.Objects.MaxBytes
			older := *r.Objects
			older.MaxBytes = 0
			_, err = js.CreateObjectStore(t.Context(), older)
		}
		require.NoError(t, err)
	}
	for stream, most := range map[string]int64{
		resources.BucketStream(deploy.DefaultBucket): 64 << 20, resources.ObjectsStream(deploy.DefaultObjects): 64 << 20,
		resources.BucketStream(deploy.BucketDeployments): 8 << 20, resources.BucketStream(deploy.BucketOwners): 2 << 20,
		resources.BucketStream(deploy.BucketRoutes): 2 << 20, resources.BucketStream(assetstore.Bucket): 1 << 20,
	} {
		require.Equal(t, most, bounds[stream], stream)
	}
	has := func() map[string]int64 {
		all := map[string]int64{}
		for stream := range bounds {
			s, err := js.Stream(t.Context(), stream)
			require.NoError(t, err)
			all[stream] = s.CachedInfo().Config.MaxBytes
		}
		return all
	}
	none := map[string]int64{}
	for stream := range bounds {
		none[stream] = -1
	}
	h := openFleet(t, func(c *config.Config) { *c = cfg; c.NatsURL = srv.URL() })
	require.Equal(t, none, has(), "nothing that starts takes room away")
	h.deploy("acme", "w", `export default { fetch: () => new Response("there") }`)
	h.deployDir(project(t, "", map[string]string{"pinwheel.json": `{"name": "site", "assets": {"directory": "dist"}}`,
		"dist/a.bin": noise(1, 2<<20)}))
	files := h.fileKeys()
	cfg.NatsURL = srv.URL()
	command := func(args ...string) (code int, out string) {
		var o bytes.Buffer
		code = cli.MainWith(cfg, args, strings.NewReader(""), &o, &o)
		return code, o.String()
	}
	code, out := command("resources", "apply")
	require.Equal(t, 2, code, out)
	require.Regexp(t, `bucket PINWHEEL_ASSETS +max_bytes +\S.* +1MiB +PINWHEEL_ASSETS_MAX_BYTES +nothing that is stored; it is full then`, out)
	for stream := range bounds {
		name := stream[strings.Index(stream, "_")+1:]
		require.Regexp(t, fmt.Sprintf(`%s +max_bytes `, name), out)
	}
	require.Equal(t, none, has())
	code, out = command("resources", "apply", "--yes")
	require.Zero(t, code, out)
	require.Equal(t, bounds, has())
	require.Equal(t, files, h.fileKeys())
	h.answers("acme/w", "there")
	code, out = command("resources", "apply")
	require.Zero(t, code, out)
	require.Contains(t, out, "nothing differs")
	code, out = command("deploy", project(t, "", map[string]string{"dist/a.bin": "small",
		"pinwheel.json": `{"name": "next", "assets": {"directory": "dist"}}`}), "--owner", "acme")
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "bucket PINWHEEL_ASSETS is full and may have 1MiB")
	require.NoError(t, h.fleet.Workers().Remove(t.Context(), "acme", "site"))
	code, out = command("deploy", project(t, "", map[string]string{"dist/a.bin": "small",
		"pinwheel.json": `{"name": "next", "assets": {"directory": "dist"}}`}), "--owner", "acme")
	require.Zero(t, code, out)
}
