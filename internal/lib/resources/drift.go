package resources

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// Level is the version of all resources that this binary creates. It goes up when a resource changes in a way that
	// processes of an older binary must not revert.
	Level = 3
	// LevelKey is the key in a resource's metadata for the level of the binary that created it.
	LevelKey = "pinwheel.assets"
)

// Difference is a field of a resource that is not as it should be. Have and Want are for people; "" = not set.
type Difference struct {
	Field string `json:"field"` // as in JetStream's JSON
	Have  string `json:"have"`
	Want  string `json:"want"`
}

func (d Difference) String() string {
	return fmt.Sprintf("%s is %s and should be %s", d.Field, orNothing(d.Have), orNothing(d.Want))
}

func orNothing(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}

// levelOf is the level in the metadata of a resource, 0 when it has none.
func levelOf(metadata map[string]string) int {
	n, err := strconv.Atoi(metadata[LevelKey])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// marked is metadata with the level of this binary.
func marked(metadata map[string]string) map[string]string {
	m := maps.Clone(metadata)
	if m == nil {
		m = map[string]string{}
	}
	m[LevelKey] = strconv.Itoa(Level)
	return m
}

// StreamDrift is what an update of a stream to want would change. It ignores what only operators choose: placement,
// compression, republishing.
func StreamDrift(have, want jetstream.StreamConfig) []Difference {
	return drift(have, completeStream(have, want))
}

// completeStream is want with the choices of the server and the operator where want has none.
func completeStream(have, want jetstream.StreamConfig) jetstream.StreamConfig {
	unlimited := func(n *int64) {
		if *n == 0 {
			*n = -1
		}
	}
	unlimited(&want.MaxBytes)
	unlimited(&want.MaxMsgs)
	unlimited(&want.MaxMsgsPerSubject)
	if want.MaxMsgSize == 0 {
		want.MaxMsgSize = -1
	}
	if want.MaxConsumers == 0 {
		want.MaxConsumers = have.MaxConsumers
	}
	if want.Duplicates == 0 {
		want.Duplicates = have.Duplicates
		if want.MaxAge > 0 { // as the server has it
			want.Duplicates = min(want.Duplicates, want.MaxAge)
		}
	}
	if want.Placement == nil {
		want.Placement = have.Placement
	}
	if want.RePublish == nil {
		want.RePublish = have.RePublish
	}
	if want.Compression == jetstream.NoCompression {
		want.Compression = have.Compression
	}
	if want.AllowMsgSchedules { // the server needs rollup for them
		want.AllowRollup = true
	}
	want.Replicas = max(1, want.Replicas)
	want.ConsumerLimits, want.FirstSeq = have.ConsumerLimits, have.FirstSeq
	want.Metadata = marked(want.Metadata)
	return want
}

// ConsumerDrift is what an update of a consumer to want would change.
func ConsumerDrift(have, want jetstream.ConsumerConfig) []Difference {
	return drift(have, completeConsumer(have, want))
}

func completeConsumer(have, want jetstream.ConsumerConfig) jetstream.ConsumerConfig {
	if want.Name == "" {
		want.Name = want.Durable
	}
	if want.MaxWaiting == 0 {
		want.MaxWaiting = have.MaxWaiting
	}
	if want.MaxAckPending == 0 {
		want.MaxAckPending = have.MaxAckPending
	}
	if want.MaxDeliver == 0 {
		want.MaxDeliver = -1
	}
	if want.AckWait == 0 {
		want.AckWait = have.AckWait
	}
	want.PauseUntil = have.PauseUntil // operators may pause
	want.Metadata = marked(want.Metadata)
	return want
}

// drift compares two configurations as JetStream's JSON has them.
func drift(have, want any) []Difference {
	h, w := fields(have), fields(want)
	var list []Difference
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if h[name] != w[name] {
			list = append(list, Difference{name, show(name, h[name]), show(name, w[name])})
		}
		delete(w, name)
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		list = append(list, Difference{name, "", show(name, w[name])})
	}
	return list
}

// fields are the fields of a configuration that are set, each as JSON. Of the metadata it has Pinwheel's only.
func fields(config any) map[string]string {
	raw, err := rawFields(config)
	if err != nil {
		return map[string]string{"": err.Error()}
	}
	set := make(map[string]string, len(raw))
	for name, value := range raw {
		switch v := string(value); {
		case name == "metadata":
			var all map[string]string
			_ = json.Unmarshal(value, &all) // it was encoded above
			for key, value := range all {
				if strings.HasPrefix(key, "pinwheel.") {
					set[metadataPrefix+key] = value
				}
			}
		case v == "false" || v == "0" || v == `""` || v == "null" || v == "[]" || v == "{}":
		default:
			set[name] = v
		}
	}
	return set
}

// durations are the fields in nanoseconds.
var durations = [...]string{"max_age", "duplicate_window", "ack_wait", "inactive_threshold",
	"subject_delete_marker_ttl", "priority_timeout", "max_expires"}

func show(field, value string) string {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && slices.Contains(durations[:], field) {
		return time.Duration(n).String()
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && field == "max_bytes" {
		return bytesText(n)
	}
	return strings.Trim(value, `"`)
}

// bytesText is a number of bytes as the environment has it, such as 64MiB.
func bytesText(n int64) string {
	if n < 0 {
		return "no limit"
	}
	units := []string{"", "KiB", "MiB", "GiB"}
	for n >= 1<<10 && n%(1<<10) == 0 && len(units) > 1 {
		n, units = n>>10, units[1:]
	}
	return strconv.FormatInt(n, 10) + units[0]
}

// immutable reports whether JetStream cannot change a field in place.
func (d Difference) immutable() bool {
	switch d.Field {
	case "storage", "sealed", "persist_mode", "mirror", "allow_msg_counter", "deliver_policy", "ack_policy",
		"replay_policy", "opt_start_seq", "opt_start_time", "mem_storage":
		return true
	case "retention":
		return d.Have == "workqueue" || d.Want == "workqueue"
	case "allow_msg_ttl", "allow_msg_schedules", "deny_delete", "deny_purge":
		return d.Have == "true" // they can be switched on, but not off
	}
	return false
}
