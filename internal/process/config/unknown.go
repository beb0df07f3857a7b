package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// removed has the variables that there were, and what holds now in place of each.
var removed = map[string]string{
	"PINWHEEL_CODE_CACHE":         "a process keeps up to 64 MiB of compiled code",
	"PINWHEEL_CONTEXT_KEEP":       "a check of a context keeps it while its isolate takes at most 32 MiB",
	"PINWHEEL_CONTEXT_MAX_REUSES": "a context is checked after every 1000 events",
	"PINWHEEL_HEARTBEAT":          "NATS confirms every 2 s that a lane without events is alive",
	"PINWHEEL_SPARE_ISOLATES":     "a process keeps 2 isolates ready for first events",
}

// ChildVariable marks a process as a supervisor's child: "NUMBER:SOCKET". Only the supervisor sets it.
const ChildVariable = "_" + EnvPrefix + "_CHILD"

// unknownVariables returns an error for every PINWHEEL_* variable that nothing reads. Otherwise a misspelt setting, or
// one that was removed, would be ignored silently.
func unknownVariables(environ []string) error {
	known := Variables()
	child := slices.ContainsFunc(environ, func(entry string) bool { return strings.HasPrefix(entry, ChildVariable+"=") })
	var errs []error
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, EnvPrefix+"_") || fromKubernetes(name, value) ||
			slices.ContainsFunc(known, func(v Variable) bool { return v.Name == name || v.File == name }) {
			continue
		}
		if now, was := removed[name]; was {
			if child { // an earlier binary is its supervisor, and passes all variables that it knows
				continue
			}
			errs = append(errs, fmt.Errorf("variable %s was removed: %s. Unset it", name, now))
			continue
		}
		errs = append(errs, fmt.Errorf("unknown variable %s is %q: did you mean %s?", name, value, nearest(name, known)))
	}
	return errors.Join(errs...)
}

var kubernetesLink = regexp.MustCompile(`^PINWHEEL_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`)

// fromKubernetes reports whether Kubernetes made the variable for a Service named pinwheel or pinwheel-…. It adds such
// variables to every pod.
func fromKubernetes(name, value string) bool {
	return kubernetesLink.MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && (strings.HasPrefix(value, "tcp://") || strings.HasPrefix(value, "udp://"))
}

// nearest is the known name with the smallest edit distance.
func nearest(name string, known []Variable) string {
	best := known[0].Name
	for _, v := range known[1:] {
		if edits(name, v.Name) < edits(name, best) {
			best = v.Name
		}
	}
	return best
}

// edits returns the Levenshtein distance of two ASCII strings.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
