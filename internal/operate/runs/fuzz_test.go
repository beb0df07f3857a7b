package runs

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/lib/stored"
)

// Whatever is stored, owner, worker and outcome are those of the subject, and a record that was read is one that a
// process can store again.
func FuzzParse(f *testing.F) {
	f.Add("pinwheel.runs.acme.w.1.ok.ff", []byte(`{"id":3,"owner":"beta","event":"e","lines":[{"text":"x"}]}`))
	f.Add("pinwheel.runs.acme", []byte(`{}`))
	f.Add("pinwheel.runs.acme.w.1.ok.ff", []byte(`[`))
	f.Fuzz(func(t *testing.T, subject string, data []byte) {
		r, err := parse(&stored.Message{Subject: subject, Sequence: 7, Data: data})
		if err != nil {
			return
		}
		require.EqualValues(t, 7, r.Seq)
		require.Contains(t, subject, "."+r.Owner+"."+r.Worker+".")
		_, err = json.Marshal(r)
		require.NoError(t, err)
	})
}

// The subject of a record has seven tokens without wildcards, whatever its event and version are.
func FuzzSubject(f *testing.F) {
	f.Add("1-0123456789ab", "event")
	f.Add("*", "a.b >")
	f.Fuzz(func(t *testing.T, version, event string) {
		r := &Record{Owner: "acme", Worker: "w", Outcome: "ok", Version: version, Event: event}
		s := r.subject(events.Subjects("pinwheel"))
		require.Regexp(t, `^pinwheel\.runs\.acme\.w\.[A-Za-z0-9_~-]{1,64}\.ok\.[0-9a-f]{2}$`, s)
	})
}
