package bundle_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/deploy/bundle"
	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
)

const manifest = `{
  "mode": "pinned",
  "vars": {"GREETING": "hello"},
  "secrets": ["WEBHOOK_SECRET"],
  "queues": {"JOBS": "csv-report"},
  "limits": {"cpuMs": 200, "wallMs": 5000, "heapMB": 64, "subrequests": 5, "logBytes": 1000},
  "retries": {"maxAttempts": 3, "initialMs": 100, "factor": 1.5, "maxMs": 1000, "jitter": 0.1, "fetch": true}
}
`

func TestManifestIsRead(t *testing.T) {
	t.Parallel()
	m, err := bundle.ParseManifest("w.pinwheel.json", []byte(manifest))
	require.NoError(t, err)
	ms := func(n int) workers.Millis { return workers.Millis(time.Duration(n) * time.Millisecond) }
	require.Equal(t, workers.Spec{
		Mode: workers.Pinned,
		Bindings: workers.Bindings{Vars: map[string]string{"GREETING": "hello"},
			Queues: map[string]string{"JOBS": "csv-report"}},
		Secrets: []string{"WEBHOOK_SECRET"},
		Limits:  workers.Limits{CPU: ms(200), Wall: ms(5000), HeapMB: 64, Subrequests: 5, LogBytes: 1000},
		Retries: workers.Retries{MaxAttempts: 3, Initial: ms(100), Factor: 1.5, Max: ms(1000), Jitter: new(0.1), Fetch: true},
	}, m)
	for text, want := range map[string]*events.DeadHook{
		`{"onDeadLetter": {"worker": "undertaker"}}`:                   {Worker: "undertaker"},
		`{"onDeadLetter": {"subject": "alerts.x", "jetStream": true}}`: {Subject: "alerts.x", JetStream: true},
	} {
		m, err := bundle.ParseManifest("w.pinwheel.json", []byte(text))
		require.NoError(t, err)
		require.Equal(t, workers.Spec{OnDead: want}, m)
	}
	m, err = bundle.ParseManifest("w.pinwheel.json", []byte("{}"))
	require.NoError(t, err)
	require.Zero(t, m)
}

func TestManifestFaultsSayWhereAndWhatIsAllowed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                    "1:1: the manifest ends too early",
		"{":                                   "1:2: the manifest ends too early",
		"[]":                                  "1:1: the manifest is not an object in braces",
		"{}\n{}":                              "2:1: something follows the manifest's closing brace",
		"{\"vars\": {}\n \"queues\": {}}":     "2:2: this is not JSON: invalid character '\"' after object key:value pair",
		"{\"vars\": {},,}":                    "1:14: this is not JSON",
		"{\n  \"var\": {}}":                   "2:3: unknown key \"var\": the manifest may have $schema, assets, batch, binaryType, concurrency, fileRoutes, http, idempotent, kv, lifetime, limits, main, mode, name, nats, node, objects, onDeadLetter, plain, queues, retries, schedules, secrets, services, sources, trace, vars, version",
		"{\"Vars\": {}}":                      "1:2: unknown key \"Vars\"",
		"{\"vars\": {}, \"vars\": {}}":        "1:14: key \"vars\" stands twice",
		"{\"limits\": {\"cpu\": 1}}":          "1:13: unknown key \"limits.cpu\": limits may have cpuMs, heapMB, logBytes, sends, subrequests, wallMs",
		"{\"limits\": 5}":                     "1:12: limits is not an object in braces",
		"{\"limits\": {\"cpuMs\": \"5\"}}":    "1:22: limits.cpuMs is \"5\": it is a whole number",
		"{\"limits\": {\"cpuMs\": 1.5}}":      "1:22: limits.cpuMs is 1.5: it is a whole number",
		"{\"limits\": {\"cpuMs\": 9e9}}":      "1:22: limits.cpuMs is 9e9: it is a whole number",
		"{\"limits\": {\n\"heapMB\": 4}}":     "2:1: limits.heapMB is 4: it is 8 to 512",
		"{\"retries\": {\"fetch\": 1}}":       "1:23: retries.fetch is 1: it is true or false",
		"{\"retries\": {\"jitter\": 2}}":      "1:14: retries.jitter is 2: it is 0 to 1",
		"{\"retries\": {\"maxAttempts\": 0}}": "1:29: retries.maxAttempts is 0: it is above 0; without it the default holds",
		"{\"retries\": {\"factor\": 0.0}}":    "1:24: retries.factor is 0: it is above 0",
		"{\"limits\": {\"cpuMs\": 0}}":        "1:22: limits.cpuMs is 0: it is above 0",
		"{\"mode\": null}":                    "1:10: mode is null: it is a string",
		"{\"mode\": \"turbo\"}":               "mode \"turbo\": it is one of pinned, shared, oneshot, persistent",
		"{\"lifetime\": {\"idleMs\": 1}}":     "1:15: lifetime.idleMs is 1: it is 10 to 2592000000",
		"{\"mode\": \"shared\", \"lifetime\": {\"ttlMs\": 10}}":                              "1:20: lifetime is for mode \"persistent\": the mode is \"shared\"",
		"{\"onDeadLetter\": {\"worker\": \"a.b\"}}":                                          "1:19: onDeadLetter.worker is no worker: worker \"a.b\": a name is 1 to 64",
		"{\"onDeadLetter\": {}}":                                                             "1:2: onDeadLetter has either a worker or a subject",
		"{\"onDeadLetter\": {\"subject\": \"$JS.x\"}}":                                       "1:19: onDeadLetter.subject is \"$JS.x\"",
		"{\"onDeadLetter\": {\"queue\": \"x\"}}":                                             "1:19: unknown key \"onDeadLetter.queue\": onDeadLetter may have jetStream, subject, worker",
		"{\"schedules\": {}}":                                                                "1:15: schedules is not a list in brackets",
		"{\"schedules\": [{\"cron\": \"* * * *\"}]}":                                         "1:17: schedules[0].cron is \"* * * *\"",
		"{\"schedules\": [{}]}":                                                              "1:16: schedules[0].cron is missing",
		"{\"schedules\": [{\"cron\": \"@daily\", \"overlap\": \"no\"}]}":                     "1:35: schedules[0].overlap is \"no\": it is one of allow, forbid, replace",
		"{\"schedules\": [{\"cron\": \"@daily\", \"misfire\": \"no\"}]}":                     "1:35: schedules[0].misfire is \"no\": it is one of skip, once, all",
		"{\"schedules\": [{\"cron\": \"@daily\", \"timeZone\": \"X\"}]}":                     "1:35: schedules[0].timeZone is \"X\"",
		"{\"schedules\": [{\"cron\": \"@daily\", \"name\": \"2\"}, {\"cron\": \"@daily\"}]}": "1:49: schedules[1].name is \"2\": schedules[0] has that name",
		"{\"schedules\": [{\"crom\": \"@daily\"}]}":                                          "1:17: unknown key \"schedules[0].crom\": schedules[0] may have cron, misfire, name, overlap, timeZone",
		"{\"vars\": {\"ü\": 1}}":                                                             "1:16: vars.ü is 1: it is a string",
		"{\"vars\": {\"1A\": \"x\"}}":                                                        "1:11: vars.1A is no name in env: it is A-Z a-z 0-9 _, not a digit first",
		"{\"queues\": {\"Q\": \"a.b\"}}":                                                     "1:13: queues.Q is no worker: worker \"a.b\": a name is 1 to 64",
		"{\"vars\": {\"Q\": \"\"}, \"queues\": {\"Q\": \"w\"}}":                              "1:11: vars.Q is a queue too: a name in env is one thing",
		"{\"vars\": {\"Q\": \"" + strings.Repeat("x", 200<<10) + "\"}}":                      "vars have 204801 bytes in all: at most 131072 are allowed",
	} {
		_, err := bundle.ParseManifest("w.pinwheel.json", []byte(text))
		var se *bundle.SourceError
		require.ErrorAs(t, err, &se, text)
		if want[0] >= '0' && want[0] <= '9' {
			want = "w.pinwheel.json:" + want
		}
		require.Contains(t, err.Error(), want)
	}
}
