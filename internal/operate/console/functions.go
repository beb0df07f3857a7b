package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/operate/flow"
)

// functions are those of the templates.
func functions(asset func(string) (string, error), traceURL string) template.FuncMap {
	return template.FuncMap{
		"asset": asset, "rate": flow.Rate, "ms": flow.Milliseconds, "age": flow.Age, "bytes": size, "number": number,
		"ago": ago, "when": when, "machine": machine,
		"percent": percent, "share": share, "spark": spark,
		"sparkBox": sparkBox, "hourSpark": hourSpark, "did": did, "join": strings.Join, "short": short, "nextPage": with,
		"duration": func(d workers.Millis) string { return d.Duration().String() },
		"hundred":  func(f float64) float64 { return 100 * f },
		"rows": func(rows []control.Schedule, operates bool, csrf, back string, named bool) scheduleRows {
			return scheduleRows{rows, operates, csrf, back, named}
		},
		"worker": func(owner, worker string) workerName { return workerName{owner, worker} },
		"workerOf": func(name string) workerName {
			owner, worker, _ := strings.Cut(name, "/")
			return workerName{owner, worker}
		},
		"pieces": stackPieces,
		"rowsOf": rowsOf, "stateText": func(state string) string { return stateTexts[state] },
		"trace": func(id string) string { return traceLink(traceURL, id) },
	}
}

// workerName is what the link of a worker shows.
type workerName struct{ Owner, Worker string }

// stateTexts say what the states of a worker mean.
var stateTexts = map[string]string{
	"active": "It runs an event now.", "idle": "A process keeps it warm for its next event.",
	"ephemeral": "Each of its events has a context of its own. None runs now.",
	"offline":   "No process keeps it warm: its next event starts cold.",
}

// rowsOf is how many rows an editor of a text has: all of a short text is seen.
func rowsOf(text string) int { return min(max(strings.Count(text, "\n")+2, 4), 28) }

// number writes a whole number with thin spaces between thousands.
func number(n any) string {
	text := fmt.Sprint(n)
	if len(text) < 5 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if i > 0 && (len(text)-i)%3 == 0 && text[i-1] != '-' {
			b.WriteRune('\u202f')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// size writes a number of bytes.
func size(n any) string {
	f := reflect.ValueOf(n).Convert(reflect.TypeFor[float64]()).Float()
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if f < 1024 || unit == "GiB" {
			if unit == "B" || f >= 100 {
				return fmt.Sprintf("%.0f %s", f, unit)
			}
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		f /= 1024
	}
	return ""
}

// ago is how long before now a time was, or until it comes.
func ago(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	d := time.Since(t)
	if d < 0 {
		return "in " + coarse(-d)
	}
	return coarse(d) + " ago"
}

// coarse is a duration in its largest unit.
func coarse(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// when is a time for people, in UTC.
func when(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// machine is a time for a datetime attribute.
func machine(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func percent(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) + " %" }

// share is a part of a whole, as a percentage.
func share(part, whole any) string {
	p, w := reflect.ValueOf(part).Convert(reflect.TypeFor[float64]()).Float(), reflect.ValueOf(whole).
		Convert(reflect.TypeFor[float64]()).Float()
	if w == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100*p/w)
}

// indented is a value as JSON for people.
func indented(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // html/template does it where the text is shown
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

const (
	// maxIndented is the longest JSON that is shown in lines, and maxDepth its deepest: each line begins with its depth.
	maxIndented = 64 << 10
	maxDepth    = 32
)

// inLines is JSON in lines, where it is an object or a list. back reports whether without white space it is the text
// again. Any other text is as it was.
func inLines(text string) (lines string, back bool) {
	depth, deepest := 0, 0
	for i := range len(text) {
		switch text[i] { // also within strings: that errs on the safe side
		case '{', '[':
			depth++
			deepest = max(deepest, depth)
		case '}', ']':
			depth--
		}
	}
	var b, small bytes.Buffer
	if deepest == 0 || deepest > maxDepth || len(text) > maxIndented || json.Indent(&b, []byte(text), "", "  ") != nil {
		return text, false
	}
	_ = json.Compact(&small, b.Bytes()) // it is JSON
	return strings.TrimSpace(b.String()), small.String() == text
}

// short is the beginning of a text that may be long.
func short(n int, text string) string {
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i] + " …"
	}
	if r := []rune(text[:min(len(text), 4*n)]); len(r) > n {
		return string(r[:n]) + "…"
	}
	return text
}

// with is a query with a field changed. An empty value removes it.
func with(query url.Values, pairs ...string) string {
	q := url.Values{}
	for k, v := range query {
		q[k] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return "?"
	}
	return "?" + q.Encode()
}

// traceLink is the address of a trace in the operator's viewer, or "".
func traceLink(pattern, id string) string {
	if pattern == "" || len(id) != 32 {
		return ""
	}
	return strings.ReplaceAll(pattern, "{trace}", id)
}
