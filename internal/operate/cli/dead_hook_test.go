package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// A worker that handles dead letters gets each as JSON, with the version and the runs. It may be deployed after the
// worker whose manifest names it. When its own event fails, it gets no dead letter for that.
func TestManifestSaysWhoIsToldOfDeadLetters(t *testing.T) {
	t.Parallel()
	f := fleettest.Start(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	write("undertaker.pinwheel.json", `{"onDeadLetter": {"worker": "undertaker"}}`)
	f.Deploy(t, write("undertaker.js", `export default { task(event) { console.log(JSON.stringify(event.payload)); event.noRetry(); throw new Error("me too"); } };`), "--owner", "acme")
	logs, err := f.NC.SubscribeSync("pinwheel.logs.acme.undertaker")
	require.NoError(t, err)
	require.NoError(t, f.NC.Flush())
	write("orders.pinwheel.json", `{"retries": {"maxAttempts": 2, "initialMs": 1}, "onDeadLetter": {"worker": "undertaker"}}`)
	f.Deploy(t, write("orders.ts", broken), "--owner", "acme")
	require.Contains(t, f.Pinwheel("workers", "show", "acme/orders").Out, "told to worker:undertaker")

	require.Equal(t, 1, f.Pinwheel("send", "task", "acme/orders", "--data", `{"id":7}`).Code)
	m, err := logs.NextMsg(patience)
	require.NoError(t, err)
	var log struct{ Text string }
	require.NoError(t, json.Unmarshal(m.Data, &log))
	var letter struct {
		ID      uint64
		Reason  string
		Body    string
		Version string
		History []struct{ Attempt int }
	}
	require.NoError(t, json.Unmarshal([]byte(log.Text), &letter))
	require.Equal(t, "exception", letter.Reason)
	require.Equal(t, `{"id":7}`, letter.Body)
	require.EqualValues(t, 1, letter.ID)
	require.Len(t, letter.History, 2)
	require.Regexp(t, "^1-", letter.Version)
	await(t, f, 2)
	awaitNoEvents(t, f)
	require.Contains(t, f.Pinwheel("dead", "show", "1").Out, "told       worker:undertaker")
	require.NotContains(t, f.Pinwheel("dead", "show", "2").Out, "told")
}
