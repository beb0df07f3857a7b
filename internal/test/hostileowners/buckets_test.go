package hostileowners

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// fullBuckets has acme deploy versions until it is refused. The bucket of all versions is small. beta deploys
// afterwards.
func fullBuckets(t *testing.T, f *fleet) (harm string) {
	f.deploy("beta", "echo", echoCode, "")
	refused, text := "", ""
	for i := 0; refused == "" && i < 20; i++ {
		refused, text = f.deployAs("acme", fmt.Sprint("w", i%4), i)
	}
	require.NotEmpty(t, refused, "acme has room without end")
	code, why := f.deployAs("beta", "good", 100)
	if code != "" {
		return fmt.Sprintf("after the deploys of acme (%s), one of beta's: %s %s", text, code, why)
	}
	require.Equal(t, "403", refused, text)
	require.Contains(t, text, "are left for all owners")
	require.Nil(t, call(t, f.as("beta"), events.Task, "beta", "echo", []byte("1")).Failure)
	return ""
}

// deployAs deploys a version of 200 kB by the owner API, and returns the code and the text of a refusal.
func (f *fleet) deployAs(owner, worker string, n int) (code, text string) {
	f.t.Helper()
	nc := f.as(owner)
	bundles, err := client.New(nc)
	require.NoError(f.t, err)
	defer func() { _ = bundles.Close() }()
	module := fmt.Sprintf("export default { task() {} } // %d %s", n, strings.Repeat("x", 200_000))
	b, err := bundles.Store(f.t.Context(), owner, strings.NewReader(module))
	require.NoError(f.t, err)
	sum := sha256.Sum256([]byte(module))
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	_, err = control.Ask(ctx, control.NewOwnerClient(nc, string(subjects), owner), control.VersionsDeploy,
		control.DeployVersion{
			WorkerName: control.WorkerName{Worker: worker}, File: "w.js",
			Bundle: control.UploadedBundle{ID: b.ID, Parts: b.Parts, Code: len(module), SHA256: hex.EncodeToString(sum[:])},
		})
	if err == nil {
		return "", ""
	}
	var refused *control.Error
	require.ErrorAs(f.t, err, &refused)
	return strconv.Itoa(refused.Code), refused.Text
}
