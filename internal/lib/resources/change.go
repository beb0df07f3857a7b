package resources

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Adds reports whether a process that starts makes the change: an engine of this binary needs it or is safer with it,
// and it removes nothing that is stored, also when other processes want something else. Every other difference stays
// until somebody applies it: two processes with two configurations would otherwise change it back and forth.
func (d Difference) Adds() bool {
	switch d.Field {
	case "description", "allow_direct", "mirror_direct", "allow_msg_ttl", "allow_msg_schedules", "allow_atomic",
		"allow_batched", "allow_rollup_hdrs",
		"deny_delete", "deny_purge", "max_msg_size", "filter_subject", "filter_subjects", "max_ack_pending",
		"max_deliver", "max_waiting":
		return true
	case "subject_transform", "subject_delete_marker_ttl":
		return d.Have == ""
	case "subjects": // those that it has stay
		have := texts(d.Have)
		return slices.ContainsFunc(texts(d.Want), func(s string) bool { return !slices.Contains(have, s) })
	}
	return strings.HasPrefix(d.Field, metadataPrefix)
}

// texts are the elements of a list as JSON has it.
func texts(list string) (all []string) {
	_ = json.Unmarshal([]byte(list), &all) // what is no list has none
	return all
}

const metadataPrefix = "metadata."

// with is a configuration with some fields of another one. Unless all of a list should change, subjects are only added.
func with[T any](have, target T, changes []Difference, all bool) (next T, err error) {
	h, err := rawFields(have)
	if err != nil {
		return next, err
	}
	t, err := rawFields(target)
	if err != nil {
		return next, err
	}
	for _, d := range changes {
		value, ok := t[d.Field]
		switch {
		case strings.HasPrefix(d.Field, metadataPrefix):
			err = setMetadata(h, strings.TrimPrefix(d.Field, metadataPrefix), d.Want)
		case d.Field == "subjects" && !all:
			h[d.Field], err = json.Marshal(union(texts(string(h[d.Field])), texts(string(value))))
		case ok:
			h[d.Field] = value
		default:
			delete(h, d.Field)
		}
		if err != nil {
			return next, err
		}
	}
	text, err := json.Marshal(h)
	if err != nil {
		return next, err
	}
	return next, json.Unmarshal(text, &next)
}

func union(a, b []string) []string {
	for _, s := range b {
		if !slices.Contains(a, s) {
			a = append(a, s)
		}
	}
	return a
}

func rawFields(config any) (raw map[string]json.RawMessage, err error) {
	text, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return raw, json.Unmarshal(text, &raw)
}

// setMetadata sets a key of the metadata, or removes it when value is "". What operators have there stays.
func setMetadata(raw map[string]json.RawMessage, key, value string) (err error) {
	var all map[string]string
	if text := raw["metadata"]; text != nil {
		if err := json.Unmarshal(text, &all); err != nil {
			return err
		}
	}
	all = maps.Clone(all)
	if all == nil {
		all = map[string]string{}
	}
	if all[key] = value; value == "" {
		delete(all, key)
	}
	raw["metadata"], err = json.Marshal(all)
	return err
}
