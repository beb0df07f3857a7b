package hostileowners

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// site deploys files for one owner by the requests of docs/reference/control.md, without the checks of the command.
type site struct {
	t     *testing.T
	nc    *nats.Conn
	owner string
}

// ask sends a request at the owner's door. refused is why it is refused; "" = it is not.
func (s site) ask(endpoint string, request any) (refused string) {
	s.t.Helper()
	body, err := json.Marshal(request)
	require.NoError(s.t, err)
	m, err := s.nc.Request("pinwheel.owner."+s.owner+"."+endpoint, body, patience)
	require.NoError(s.t, err)
	return m.Header.Get(micro.ErrorHeader)
}

// body stores a text in parts.
func (s site) body(text string) (id string, parts int, sum string) {
	s.t.Helper()
	c, err := client.New(s.nc)
	require.NoError(s.t, err)
	defer func() { _ = c.Close() }()
	b, err := c.Store(s.t.Context(), s.owner, strings.NewReader(text))
	require.NoError(s.t, err)
	return b.ID, b.Parts, hashOf(text)
}

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// page is the only file of a site.
const page = "a page"

// deploy stores a page and a list of files, and deploys a worker with them.
func (s site) deploy(worker, list string) (refused string) {
	s.t.Helper()
	files := page + list
	id, parts, _ := s.body(files)
	require.Empty(s.t, s.ask("files.store", control.StoreFiles{ID: id, Parts: parts, Files: []control.UploadedFile{
		{SHA256: hashOf(page), Size: len(page), Type: "image/png"},
		{SHA256: hashOf(list), Size: len(list), Type: "image/png"},
	}}))
	const code = `export default { fetch: () => new Response("ok") }`
	id, parts, sum := s.body(code)
	return s.ask("versions.deploy", control.DeployVersion{
		WorkerName: control.WorkerName{Worker: worker}, File: "w.js",
		Spec:   workers.Spec{Assets: &workers.Assets{Directory: "dist", Files: hashOf(list)}},
		Bundle: control.UploadedBundle{ID: id, Parts: parts, Code: len(code), SHA256: sum},
	})
}

// pages is the files of a list: a page at each path.
func pages(paths ...string) string {
	var list []string
	for _, path := range paths {
		list = append(list, fmt.Sprintf(`%q:{"hash":%q,"size":%d,"type":"image/png"}`, path, hashOf(page), len(page)))
	}
	return `"files":{` + strings.Join(list, ",") + `}`
}

// status is the status of a GET request to a process, whose body it reads.
func status(t testing.TB, p *fleettest.Process, host, path string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.HTTP+path, http.NoBody)
	require.NoError(t, err)
	r.Host = host
	answer, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	return answer.StatusCode
}

// fileLists has acme deploy a list of 60 000 redirects. The memory of the process stays.
func fileLists(t *testing.T, f *fleet) (harm string) {
	const rules, most = 60_000, 100 // MiB. To store the list takes some 20
	var redirects strings.Builder
	for i := range rules {
		_, _ = fmt.Fprintf(&redirects, `,{"from":"/%d/:a/:b/:c/:d/:e/:f/:g/:h/:i/:j/:k/:l/:m/:n","to":"/","status":302}`, i)
	}
	p, acme := f.processes[0], site{t, f.as("acme"), "acme"}
	before := forgetMost(t, p)
	refused := acme.deploy("w", `{`+pages("/page.png")+`,"redirects":[`+redirects.String()[1:]+`]}`)
	_, after := rss(t, p)
	t.Logf("%d MiB more", (after-before)>>20)
	if more := (after - before) >> 20; more > most || refused == "" {
		return fmt.Sprintf("%d redirects of acme take %d MiB of memory, refused: %q", rules, more, refused)
	}
	require.Contains(t, refused, "2100 redirects")
	return ""
}

// fileCache has acme deploy lists that together are larger than the cache of files. beta's file stays in the cache: it
// is served although it is no longer stored.
func fileCache(t *testing.T, f *fleet) (harm string) {
	const lists, files = 6, 1000 // 2 MB of 2 MiB
	p, acme, beta := f.processes[0], site{t, f.as("acme"), "acme"}, site{t, f.as("beta"), "beta"}
	require.Empty(t, beta.deploy("w", `{`+pages("/page.png")+`}`))
	until(t, "beta's file is served", func() bool { return status(t, p, betaHost, "/page.png") == http.StatusOK })
	kv, err := f.js.KeyValue(t.Context(), "PINWHEEL_ASSETS")
	require.NoError(t, err)
	keys, err := kv.ListKeysFiltered(t.Context(), "beta.>")
	require.NoError(t, err)
	for key := range keys.Keys() {
		require.NoError(t, kv.Delete(t.Context(), key))
	}
	for i := range lists {
		paths := make([]string, files)
		for n := range paths {
			paths[n] = fmt.Sprintf("/%d/%d/%s.png", i, n, strings.Repeat("x", 240))
		}
		deployed := func() bool {
			refused := acme.deploy(fmt.Sprint("w", i), `{`+pages(paths...)+`}`)
			if strings.Contains(refused, "took too long to load: try again in") { // on a busy machine
				return false
			}
			require.Empty(t, refused)
			return true
		}
		require.Eventually(t, deployed, 3*patience, time.Second)
		host := fmt.Sprintf("w%d--%s", i, strings.TrimPrefix(acmeHost, "w--"))
		until(t, "acme's files are served", func() bool { return status(t, p, host, paths[0]) == http.StatusOK })
	}
	if code := status(t, p, betaHost, "/page.png"); code != http.StatusOK {
		return fmt.Sprintf("acme's lists displace beta's file from the cache: status %d", code)
	}
	return ""
}
