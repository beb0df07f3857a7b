package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/assetstore"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/inventory"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

// openFiles opens a secured fleet that answers HTTP requests.
func openFiles(t *testing.T) (h *testFleet, url string) {
	t.Helper()
	url = natstest.StartConfigured(t, "../../../deploy/nats/users.conf")
	return openFleet(t, withWeb, func(c *config.Config) {
		c.NatsURL, c.NatsUser, c.NatsPassword, c.ReplyPrefixes, c.MaxBytes = url, "fleet", "fleet-secret", config.List{
			"_INBOX.{owner}."}, 256<<20
	}), url
}

// deployBy deploys a directory with the command, as a user who is nothing but an owner.
func (h *testFleet) deployBy(owner, dir string, args ...string) (code int, out string) {
	h.t.Helper()
	cfg := h.fleet.Config()
	cfg.NatsUser, cfg.NatsPassword, cfg.Owner, cfg.ReplyPrefixes = owner, owner+"-secret", owner, config.Default().
		ReplyPrefixes
	var b bytes.Buffer
	code = cli.MainWith(cfg, append([]string{"deploy", dir}, args...), strings.NewReader(""), &b, &b)
	return code, b.String()
}

func (h *testFleet) setPolicyOf(owner string, p workers.Policy) {
	h.t.Helper()
	policies, err := deploy.OpenPolicies(h.t.Context(), h.js, inventory.Deploy(h.fleet.Config()))
	require.NoError(h.t, err)
	_, err = policies.Set(h.t.Context(), owner, func(now *workers.Policy) { *now = p })
	require.NoError(h.t, err)
}

// An owner deploys a site with its own NATS user. What is stored is not sent again, and what no version has makes room.
func TestAnOwnerDeploysFiles(t *testing.T) {
	t.Parallel()
	h, _ := openFiles(t)
	w := openWeb(t, h.fleet.HTTPAddr())
	big := strings.Repeat("0123456789", 1_000_000)
	dir := project(t, "", map[string]string{
		"pinwheel.json":   `{"main": "app.js", "assets": {"directory": "dist", "binding": "ASSETS"}}`,
		"app.js":          `export default { fetch: (request, env) => env.ASSETS.fetch("http://h/other") }`,
		"dist/index.html": strings.Repeat("<p>home</p>", 1000), "dist/other.html": "other", "dist/empty.txt": "",
		"dist/big.bin": big, "dist/same.bin": big,
		"dist/_redirects": "/old /other",
	})
	code, out := h.deployBy("acme", dir, "--dry-run")
	require.Zero(t, code, out)
	require.NotContains(t, out, "stored 5")
	require.Empty(t, h.fileKeys())
	acme := as(t, h.fleet.Config().NatsURL, "acme")
	require.Empty(t, storeAsOwner(t, acme, "acme", storing(t, acme, "acme", big)), "a deploy that was cut has stored it")
	code, out = h.deployBy("acme", dir)
	require.Zero(t, code, out)
	require.Contains(t, out, "stored 3 files, ", "their list is not counted")
	for path, want := range map[string]string{"/": strings.Repeat("<p>home</p>", 1000), "/other": "other",
		"/empty.txt": "", "/big.bin": big, "/same.bin": big, "/old": "other", "/none": "other"} {
		resp, body := w.ask("GET", "acme/site", path, "")
		require.Equal(t, 200, resp.StatusCode, path)
		require.Equal(t, want, body, path)
	}
	resp, _ := w.ask("GET", "acme/site", "/", "", "Accept-Encoding", "br")
	require.Equal(t, "br", resp.Header.Get("Content-Encoding"))

	code, out = h.deployBy("acme", dir)
	require.Zero(t, code, out)
	require.NotContains(t, out, "stored")
	project(t, dir, map[string]string{"dist/other.html": "changed"})
	code, out = h.deployBy("acme", dir)
	require.Zero(t, code, out)
	require.Contains(t, out, "stored 1 file, ", "its list is not counted")
	require.Eventually(t, func() bool {
		_, body := w.ask("GET", "acme/site", "/other", "")
		return body == "changed"
	}, patience, tick)

	// The bound is for all versions; what the fleet's user deploys passes it, and counts.
	h.setPolicyOf("acme", workers.Policy{AssetBytes: 12_000_000})
	project(t, dir, map[string]string{"dist/more.bin": strings.Repeat("x", 3_000_000)})
	code, out = h.deployBy("acme", dir)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "files of owner acme are refused: they have ")
	require.Contains(t, out, "all may have 12000000 (assetBytes)")
	h.deployDir(dir)
	h.setPolicyOf("acme", workers.Policy{AssetBytes: 14_000_000})
	require.NoError(t, os.Remove(filepath.Join(dir, "dist/more.bin")))
	project(t, dir, map[string]string{"dist/another.bin": strings.Repeat("y", 3_000_000)})
	code, out = h.deployBy("acme", dir)
	require.Equal(t, 1, code, out)
	require.Contains(t, out, "files of owner acme are refused: the stored files have ")
	require.NoError(t, h.fleet.Workers().Remove(t.Context(), "acme", "site"))
	code, out = h.deployBy("acme", dir)
	require.Zero(t, code, out)
	require.Equal(t, control.MissingHashes{Missing: []string{}}, missingOf(t, acme, "acme", assetsHash(big)))
	require.Equal(t, control.MissingHashes{Missing: []string{assetsHash(big)}},
		missingOf(t, as(t, h.fleet.Config().NatsURL, "beta"), "beta", assetsHash(big)), "owners share nothing")
}

func assetsHash(data string) string {
	sum := sha256.Sum256([]byte(data))
	return hex.EncodeToString(sum[:])
}

func missingOf(t *testing.T, nc *nats.Conn, owner string, hashes ...string) (m control.MissingHashes) {
	t.Helper()
	body, err := json.Marshal(control.MissingFiles{Hashes: hashes})
	require.NoError(t, err)
	answer, failure := askAsOwner(t, nc, owner, "files.missing", string(body))
	require.Empty(t, failure)
	require.NoError(t, json.Unmarshal([]byte(answer), &m))
	return m
}

// storing stores files in parts as owner, and returns the request that has the fleet take them.
func storing(t *testing.T, nc *nats.Conn, owner string, files ...string) control.StoreFiles {
	t.Helper()
	c, err := client.New(nc)
	require.NoError(t, err)
	defer func() { _ = c.Close() }()
	b, err := c.Store(t.Context(), owner, strings.NewReader(strings.Join(files, "")))
	require.NoError(t, err)
	r := control.StoreFiles{ID: b.ID, Parts: b.Parts}
	for _, data := range files {
		r.Files = append(r.Files, control.UploadedFile{SHA256: assetsHash(data), Size: len(data), Type: "text/plain"})
	}
	return r
}

func storeAsOwner(t *testing.T, nc *nats.Conn, owner string, r control.StoreFiles) (failure string) {
	t.Helper()
	body, err := json.Marshal(r)
	require.NoError(t, err)
	_, failure = askAsOwner(t, nc, owner, "files.store", string(body))
	return failure
}

// What an owner says of its files is checked. It can write no other owner's files, and fill the store only to its
// bound.
func TestFilesThatLie(t *testing.T) {
	t.Parallel()
	h, url := openFiles(t)
	acme, beta := as(t, url, "acme"), as(t, url, "beta")
	for name, c := range map[string]struct {
		change func(*control.StoreFiles)
		want   string
	}{
		"another hash": {func(r *control.StoreFiles) { r.Files[0].SHA256 = strings.Repeat("0", 64) }, `400 file "0000`},
		"no hash":      {func(r *control.StoreFiles) { r.Files[0].SHA256 = "../x" }, "400 files"},
		"key of parts": {func(r *control.StoreFiles) { r.Files[0].SHA256 = "beta." + strings.Repeat("0", 59) }, "400 files"},
		"less":         {func(r *control.StoreFiles) { r.Files[0].Size++ }, "400 body "},
		"more":         {func(r *control.StoreFiles) { r.Files[0].Size-- }, "400 body "},
		"below zero":   {func(r *control.StoreFiles) { r.Files[0].Size = -1 }, "400 files"},
		"too large":    {func(r *control.StoreFiles) { r.Files[0].Size = 26 << 20 }, "400 files: size is 27262976"},
		"overflow":     {func(r *control.StoreFiles) { r.Files[0].Size = 1 << 62 }, "400 files"},
		"shifted":      {func(r *control.StoreFiles) { r.Files[0].Size--; r.Files[1].Size++ }, "400 file "},
		"none":         {func(r *control.StoreFiles) { r.Files = nil }, "400 files"},
		"many":         {func(r *control.StoreFiles) { r.Files = make([]control.UploadedFile, 1001) }, "400 files"},
		"too much": {func(r *control.StoreFiles) { r.Files[0].Size, r.Files[1].Size = 25<<20, 25<<20 },
			"400 files have more than 26214400"},
		"more parts":    {func(r *control.StoreFiles) { r.Parts = 2 }, "400 part 1 of 2 of body"},
		"no parts":      {func(r *control.StoreFiles) { r.Parts = 0 }, "400 body "},
		"wildcard id":   {func(r *control.StoreFiles) { r.ID = "*" }, "400 id"},
		"another id":    {func(r *control.StoreFiles) { r.ID = "x" }, "400 part 0 of 1"},
		"another owner": {func(r *control.StoreFiles) { r.Owner = "beta" }, "403 owner"},
	} {
		r := storing(t, acme, "acme", "first", "second")
		c.change(&r)
		failure := storeAsOwner(t, acme, "acme", r)
		require.True(t, strings.HasPrefix(failure, c.want), "%s: %q", name, failure)
	}
	require.Empty(t, h.fileKeys())

	// Parts of another owner cannot be named.
	theirs := storing(t, beta, "beta", "secret of beta")
	require.Contains(t, storeAsOwner(t, acme, "acme", theirs), "400 part 0 of 1 of body "+theirs.ID+" is not there")
	require.Empty(t, storeAsOwner(t, beta, "beta", theirs))
	for _, key := range h.fileKeys() {
		require.True(t, strings.HasPrefix(key, "beta."), key)
	}

	// A version names only files that are there, as its list says.
	list := func(files string) string { return `{"files":{` + files + `}}` }
	one := func(size int, kind string) string {
		return fmt.Sprintf(`"/a.txt":{"hash":%q,"size":%d,"type":%q}`, assetsHash("first"), size, kind)
	}
	deployed := func(hash string) string {
		r := uploaded(t, acme, "acme", "w", goodVersion)
		r.Spec.Assets = &workers.Assets{Directory: "dist", Files: hash}
		_, failure := deployAsOwner(t, acme, "acme", r)
		return failure
	}
	require.Contains(t, deployed(""), "400 assets.files is missing")
	require.Contains(t, deployed("x"), "400 assets.files")
	require.Contains(t, deployed(assetsHash("secret of beta")), "412 ")
	good := list(one(5, "text/plain"))
	require.Empty(t, storeAsOwner(t, acme, "acme", storing(t, acme, "acme", good)))
	require.Contains(t, deployed(assetsHash(good)), "412 deploy acme/w: 1 files of the version are not stored")
	require.Empty(t, storeAsOwner(t, acme, "acme", storing(t, acme, "acme", "first")))
	for text, want := range map[string]string{
		list(one(6, "text/plain")):                                         `400 deploy acme/w: list of files: the file at "/a.txt" has 5 bytes, and not 6`,
		list(one(5, "text/html\r\nSet-Cookie: a=b")):                       "400 deploy acme/w: list of files: the file at \"/a.txt\" is damaged",
		list(strings.ReplaceAll(one(5, "x"), "/a.txt", "/../a.txt")):       "400 deploy acme/w: list of files: path",
		`{"files":{},"redirects":[{"from":"/a","to":"javascript:x"}]}`:     "400 deploy acme/w: list of files: ",
		`{"files":{},"headers":[{"path":"/a","set":[["A","b\r\nC: d"]]}]}`: "400 deploy acme/w: list of files: ",
		"no list": "400 deploy acme/w: list of files: ",
	} {
		require.Empty(t, storeAsOwner(t, acme, "acme", storing(t, acme, "acme", text)))
		failure := deployed(assetsHash(text))
		require.True(t, strings.HasPrefix(failure, want), "%s: %q", text, failure)
	}
	require.Empty(t, h.ask("workers.list", "")["workers"])
	require.Empty(t, deployed(assetsHash(good)))

	// Many at once, each with another file: those before, which no version has, make room, and the bound holds.
	h.setPolicyOf("beta", workers.Policy{AssetBytes: 100_000})
	requests := map[string]control.StoreFiles{}
	for i := range 8 {
		requests[fmt.Sprint(i)] = storing(t, beta, "beta", strings.Repeat(fmt.Sprint(i), 20_000))
	}
	for len(requests) > 0 {
		inboxes := map[string]*nats.Subscription{}
		for i, r := range requests {
			body, err := json.Marshal(r)
			require.NoError(t, err)
			inbox := beta.NewInbox()
			inboxes[i], err = beta.SubscribeSync(inbox)
			require.NoError(t, err)
			require.NoError(t, beta.PublishRequest("pinwheel.owner.beta.files.store", inbox, body))
		}
		for i, answers := range inboxes {
			m, err := answers.NextMsg(patience)
			require.NoError(t, err)
			if code := m.Header.Get("Nats-Service-Error-Code"); code == "" {
				delete(requests, i)
			} else {
				require.Equal(t, "503", code, m.Header.Get("Nats-Service-Error"))
			}
		}
		require.LessOrEqual(t, h.bytesOf("beta"), int64(100_000))
	}
	require.Contains(t, storeAsOwner(t, beta, "beta", storing(t, beta, "beta", strings.Repeat("x", 100_000))),
		"403 files of owner beta are refused: ")
	require.Positive(t, h.bytesOf("beta"), "what can never fit makes no room")
}

// bytesOf is what is stored for an owner, as its bound counts it.
func (h *testFleet) bytesOf(owner string) (n int64) {
	h.t.Helper()
	kv, err := h.js.KeyValue(h.t.Context(), assetstore.Bucket)
	require.NoError(h.t, err)
	for _, key := range h.fileKeys() {
		hash, own := strings.CutPrefix(key, owner+".")
		if !own || len(hash) != 64 {
			continue
		}
		e, err := kv.Get(h.t.Context(), key)
		require.NoError(h.t, err)
		var s struct{ Size int64 }
		require.NoError(h.t, json.Unmarshal(e.Value(), &s))
		n += s.Size + assetstore.FileCost
	}
	return n
}
