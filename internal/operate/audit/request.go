package audit

import (
	"encoding/json"
	"slices"
	"strings"
)

// told are the fields of requests that records tell. All others may have content of events, or secrets.
var told = []string{
	"after", "alias", "aliases", "all", "bucket", "by", "dryRun", "force", "id", "ids", "job", "key", "kind", "limit",
	"match", "maxReplays", "message", "name", "namespace", "node", "number", "owner", "percent", "policy", "rate",
	"reason", "removeHeaders", "replays", "since", "split", "to", "until", "version", "worker",
}

const (
	// maxTold is the longest value of a field that a record tells, in bytes.
	maxTold = 500
	// maxFields is how many fields of a request a record tells.
	maxFields = 32
)

// Request returns what a record tells of a request. Of fields that are not told, it has the names under "with". The
// request must be a JSON object that was decoded before.
func Request(data []byte) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(data, &all) != nil {
		return json.RawMessage(`{}`)
	}
	out := map[string]any{}
	var with []string
	for name, value := range all {
		switch {
		case len(out)+len(with) >= maxFields:
		case !slices.ContainsFunc(told, func(t string) bool { return strings.EqualFold(t, name) }):
			with = append(with, cut(name))
		case len(value) > maxTold:
			out[cut(name)] = cut(string(value[:maxTold])) + "…"
		default:
			out[name] = value
		}
	}
	if with != nil {
		slices.Sort(with)
		out["with"] = with
	}
	text, err := json.Marshal(out)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	return text
}

func cut(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxTold)], "")
}

// OwnerOf returns the owner that a request names: as owner, or in a worker OWNER/WORKER. It is "" if it names none.
func OwnerOf(data []byte) string {
	var r struct{ Owner, Worker string }
	if json.Unmarshal(data, &r) != nil {
		return ""
	}
	if r.Owner == "" {
		r.Owner, _, _ = strings.Cut(r.Worker, "/")
		if r.Owner == r.Worker {
			return ""
		}
	}
	return r.Owner
}
