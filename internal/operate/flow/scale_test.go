package flow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// loaded is a fleet of processes that are so busy, with so many events in its streams.
func loaded(stored, parked uint64, busy ...float64) flow.Snapshot {
	at := time.Unix(1_700_000_000, 0)
	s := flow.Snapshot{At: at}
	s.Stored.Events = &control.StreamStats{Messages: stored}
	s.Stored.Parked = &control.StreamStats{Messages: parked}
	for _, b := range busy {
		s.Flows = append(s.Flows, control.Flow{Busy: &b})
	}
	return s
}

func scaleOf(t require.TestingT, s flow.Snapshot, target int) flow.Scale {
	scale, err := flow.ScaleOf(s, target)
	require.NoError(t, err)
	return scale
}

func TestScaleWantsProcessesForWhatWaitsAndForWhatRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   flow.Snapshot
		want int
	}{
		{loaded(0, 0, 0), 1},
		{loaded(0, 0, 0, 0, 0), 1},
		{loaded(1, 0, 0), 1},
		{loaded(0, 0, 0.8, 0.8, 0.8), 3},
		{loaded(0, 0, 1, 1, 1), 4},
		{loaded(0, 0, 0.4, 0.4, 0.4, 0.4), 2},
		{loaded(0, 0, 0, 0.1), 1},
		{loaded(100, 0, 0), 1},
		{loaded(101, 0, 0), 2},
		{loaded(400, 350, 0.8, 0.8), 8},
		{loaded(1<<40, 0, 0), flow.MaxWanted},
	} {
		s := scaleOf(t, c.of, 100)
		require.Equal(t, c.want, s.Wanted, "%+v", s)
	}
}

func TestScaleCountsEachEventOnce(t *testing.T) {
	t.Parallel()
	s := loaded(1000, 50, 0.5, 1, 1)
	s.Flows[0].Held, s.Flows[0].Queued, s.Flows[0].Running = 40, 30, 8 // 2 wait for their next attempt
	s.Flows[1].Held, s.Flows[1].Queued = 10, 25                        // of these 15 are not stored
	s.Flows[2].Held, s.Flows[2].Draining = 5, true
	s.Stored.Events.Oldest, s.Stored.Parked.Oldest = s.At.Add(-time.Minute), s.At.Add(-90*time.Second)
	got := scaleOf(t, s, 200)
	require.Equal(t, flow.Scale{Wanted: 6, Waiting: 1000 + 50 - 55 + 55, OldestSeconds: 90, Busy: 0.75, Processes: 2}, got)
	text, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{"wanted":6,"waiting":1050,"paused":0,"limited":0,"oldestSeconds":90,"busy":0.75,"processes":2}`, string(text))

	s = loaded(3, 0, 0.5)
	s.Flows[0].Held = 7 // it has settled some since the stream was asked
	s.Stored.Events.Oldest = s.At.Add(time.Second)
	require.Equal(t, flow.Scale{Wanted: 1, Busy: 0.5, Processes: 1}, scaleOf(t, s, 1))
}

// What waits until it is resumed wants no process, however long the pause is.
func TestScaleWantsNothingForPausedEvents(t *testing.T) {
	t.Parallel()
	s := loaded(10, 5000, 0.1)
	s.Stored.Parked.Oldest = s.At.Add(-24 * time.Hour)
	s.Paused = 4700
	got := scaleOf(t, s, 100)
	require.Equal(t, flow.Scale{Wanted: 4, Waiting: 310, Paused: 4700, OldestSeconds: 86400, Busy: 0.1, Processes: 1}, got)
	s.Paused = 6000 // some were removed meanwhile
	require.Equal(t, flow.Scale{Wanted: 1, Waiting: 10, Paused: 5000, Busy: 0.1, Processes: 1}, scaleOf(t, s, 100))
}

// A process that does not answer, or does not say how busy it is, is neither replaced nor taken away.
func TestScaleOfProcessesThatDoNotSay(t *testing.T) {
	t.Parallel()
	s := loaded(0, 0, 0.8)
	s.Flows = append(s.Flows, control.Flow{})
	s.Missing = []control.Member{{Node: "hangs"}}
	require.Equal(t, flow.Scale{Wanted: 3, Busy: 0.8, Processes: 3}, scaleOf(t, s, 1000))
}

func TestScaleIsNotKnownWithoutCounts(t *testing.T) {
	t.Parallel()
	s := loaded(1, 1, 0)
	s.Stored.Events = nil
	_, err := flow.ScaleOf(s, 1)
	require.ErrorContains(t, err, "the stream of events is not there")
	_, err = flow.ScaleOf(loaded(1, 1), 1)
	require.ErrorContains(t, err, "no process says what it does")
}

// More waiting events never want fewer processes, nor do busier processes; and what waits is never left to none.
func TestScaleRisesWithWhatWaits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		busy := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 20).Draw(t, "busy")
		stored, more := rapid.Uint64Range(0, 1<<40).Draw(t, "stored"), rapid.Uint64Range(0, 1<<20).Draw(t, "more")
		target := rapid.IntRange(1, 100_000).Draw(t, "target")
		less := scaleOf(t, loaded(stored, 0, busy...), target)
		require.GreaterOrEqual(t, less.Wanted, 1)
		require.LessOrEqual(t, less.Wanted, flow.MaxWanted)
		require.GreaterOrEqual(t, scaleOf(t, loaded(stored, more, busy...), target).Wanted, less.Wanted)
		busy[0] = rapid.Float64Range(busy[0], 1).Draw(t, "busier")
		require.GreaterOrEqual(t, scaleOf(t, loaded(stored, 0, busy...), target).Wanted, less.Wanted)
	})
}

// The configurations of the page are YAML, and name fields that the answer has.
func TestPageOfScaleNamesFields(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/guides/scale.md")
	require.NoError(t, err)
	answer, fields := scaleOf(t, loaded(1, 0, 1), 1), map[string]any{}
	encoded, err := json.Marshal(answer)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(encoded, &fields))
	named, exported := []string{}, map[string]bool{}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1) {
		var c struct {
			Spec struct {
				Triggers []struct{ Metadata map[string]string }
				Metrics  []struct {
					External struct{ Metric struct{ Name string } }
				}
			}
			Modules map[string]struct{ Metrics []struct{ Name, Path string } }
			Rules   []struct {
				Query string `yaml:"seriesQuery"`
			} `yaml:"externalRules"`
		}
		require.NoError(t, yaml.Unmarshal(block[1], &c), "%s", block[1])
		for _, x := range c.Spec.Triggers {
			named = append(named, x.Metadata["valueLocation"])
			require.Contains(t, x.Metadata["url"], fmt.Sprintf(":8422/scale?target=%d", flow.DefaultTarget))
		}
		for _, m := range c.Modules["pinwheel"].Metrics {
			exported[m.Name] = true
			named = append(named, strings.Trim(m.Path, "{ .}"))
		}
		for _, x := range c.Rules {
			require.True(t, exported[x.Query], x.Query)
		}
		for _, m := range c.Spec.Metrics {
			require.True(t, exported[m.External.Metric.Name], m.External.Metric.Name)
		}
	}
	require.Equal(t, []string{"wanted", "wanted", "waiting"}, named)
	for _, name := range named {
		require.Contains(t, fields, name)
	}
	for name := range fields {
		require.Contains(t, string(text), "| `"+name+"` |")
	}
}
