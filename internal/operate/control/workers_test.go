package control

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

// The JSON of a worker is stable: new fields may be added, but none may be removed or renamed.
func TestWorkersAsJSON(t *testing.T) {
	t.Parallel()
	for manifest, want := range map[string]string{
		`{}`: `{"owner":"acme","name":"w","version":"3-abc","hash":"abcdef","mode":"pinned","handlers":["fetch","scheduled"],"file":"w.js","vars":[],"queues":{},` +
			`"limits":{"cpuMs":50,"wallMs":30000,"heapMB":128,"subrequests":50,"sends":1000,"logBytes":65536},` +
			`"retries":{"maxAttempts":5,"initialMs":1000,"factor":2,"maxMs":60000,"jitter":0.2},"deployedAt":"2026-01-02T03:04:05Z"}`,
		`{"mode": "persistent", "vars": {"B": "1", "A": "secret"}, "queues": {"JOBS": "report"}, "limits": {"heapMB": 64}, "retries": {"maxAttempts": 1, "fetch": true},
		  "lifetime": {"idleMs": 60000}, "onDeadLetter": {"worker": "undertaker"}, "idempotent": true, "schedules": [{"cron": "@daily"}]}`: `{"owner":"acme","name":"w","version":"3-abc","hash":"abcdef","mode":"persistent","handlers":["fetch","scheduled"],"file":"w.js","vars":["A","B"],"queues":{"JOBS":"report"},` +
			`"limits":{"cpuMs":50,"wallMs":30000,"heapMB":64,"subrequests":50,"sends":1000,"logBytes":65536},` +
			`"retries":{"maxAttempts":1,"initialMs":1000,"factor":2,"maxMs":60000,"jitter":0.2,"fetch":true},"lifetime":{"idleMs":60000},` +
			`"onDeadLetter":{"worker":"undertaker"},"idempotent":true,"schedules":[{"name":"1","cron":"@daily"}],"deployedAt":"2026-01-02T03:04:05Z"}`,
	} {
		m, err := bundle.ParseManifest("w.pinwheel.json", []byte(manifest))
		require.NoError(t, err)
		text, err := json.Marshal(DescribeWorker(&workers.Worker{
			Owner: "acme", Name: "w", Version: "3-abc", Number: 3, Hash: "abcdef",
			Handlers: []events.Kind{events.Fetch, events.Scheduled}, Code: "code", File: "w.js",
			Spec: m, DeployedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		}))
		require.NoError(t, err)
		require.JSONEq(t, want, string(text))
		require.NotContains(t, string(text), "secret")
	}
}
