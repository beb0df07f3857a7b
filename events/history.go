package events

import (
	"encoding/json"
	"time"
)

// FailedRun is one failed run of an event.
type FailedRun struct {
	At      time.Time `json:"at"`
	Attempt int       `json:"attempt"` // its number, 1 for the first
	Reason  Reason    `json:"reason,omitempty"`
	Message string    `json:"message,omitempty"` // cut to MaxHistoryMessage bytes
	Node    string    `json:"node,omitempty"`
	Batch   int       `json:"batch,omitempty"` // how many events the run had, if it had several
	Asked   bool      `json:"asked,omitempty"` // the handler asked for another run of the event
}

// Bounds of the history in a dead letter.
const (
	MaxHistory        = 10  // runs
	MaxHistoryMessage = 256 // bytes of each message
)

// encodeHistory writes the last runs as JSON, in one line of bounded size; "" for none.
func encodeHistory(runs []FailedRun) string {
	if len(runs) == 0 {
		return ""
	}
	runs = runs[max(0, len(runs)-MaxHistory):]
	short := make([]FailedRun, len(runs))
	for i, r := range runs {
		r.At, r.Message, r.Node = r.At.UTC(), Clip(r.Message, MaxHistoryMessage), Clip(r.Node, MaxName)
		short[i] = r
	}
	text, err := json.Marshal(short)
	if err != nil {
		return "" // a time outside JSON's range, which no clock gives
	}
	return string(text)
}

func decodeHistory(text string) ([]FailedRun, error) {
	if text == "" {
		return nil, nil
	}
	var runs []FailedRun
	err := json.Unmarshal([]byte(text), &runs)
	return runs, err
}
