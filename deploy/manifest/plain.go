package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// secretLike are the patterns of names whose values are secrets as a rule. Case does not matter.
var secretLike = []*regexp.Regexp{
	regexp.MustCompile(`(?i)^(DATABASE|DB)_`),
	regexp.MustCompile(`(?i)^(API|AUTH|SECRET|PRIVATE)_?KEY`),
	regexp.MustCompile(`(?i)_TOKEN$`),
	regexp.MustCompile(`(?i)_SECRET$`),
	regexp.MustCompile(`(?i)_PASSWORD$`),
	regexp.MustCompile(`(?i)^AWS_`),
	regexp.MustCompile(`(?i)^GITHUB_`),
	regexp.MustCompile(`(?i)^OPENAI_`),
	regexp.MustCompile(`(?i)^ANTHROPIC_`),
	regexp.MustCompile(`(?i)^STRIPE_`),
}

// LooksSecret reports whether a name in env looks like that of a secret.
func LooksSecret(name string) bool {
	return slices.ContainsFunc(secretLike, func(r *regexp.Regexp) bool { return r.MatchString(name) })
}

// CheckPlain returns an error that names all of vars that look like secrets and are not among plain. vars are stored as
// they are, and everybody who may read the fleet's NATS reads them. The error begins with the path of the first var,
// and does not quote its value. Versions that are stored already are not checked.
func CheckPlain(vars map[string]string, plain []string) error { return checkPlain(vars, nil, plain) }

// suspect is a var that looks like a secret. key is the key in its value that does; "" = it is the name of the var.
type suspect struct{ name, key string }

func (s suspect) secret() string { return cmp.Or(s.key, s.name) }

// checkPlain does what CheckPlain does, also for vars that are JSON texts. A key of an object in them, however deep,
// counts as a name.
func checkPlain(vars, texts map[string]string, plain []string) error {
	found := make([]suspect, 0)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		found = append(found, suspect{name: name})
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		found = append(found, suspect{name: name})
		var value any
		if err := json.Unmarshal([]byte(texts[name]), &value); err != nil {
			return fmt.Errorf("vars.%s is no JSON text: %w", name, err)
		}
		if slices.Contains(plain, name) {
			continue
		}
		for _, key := range keysIn(value) {
			found = append(found, suspect{name, key})
		}
	}
	found = slices.DeleteFunc(found, func(s suspect) bool {
		return !LooksSecret(s.secret()) || slices.Contains(plain, s.secret())
	})
	switch {
	case len(found) == 0:
		return nil
	case len(found) > 1:
		return refuseAll(found)
	case found[0].key != "":
		return fmt.Errorf("vars.%s has the key %q, which looks like a secret: make it one (\"secrets\": [%q], and 'pinwheel secrets set'), or name the key in \"plain\"", found[0].name, found[0].key, found[0].key)
	}
	return fmt.Errorf("vars.%s looks like a secret: make it one (\"secrets\": [%q], and 'pinwheel secrets set'), or name it in \"plain\" (a --var: with --plain)", found[0].name, found[0].name)
}

// refuseAll names several vars at once.
func refuseAll(found []suspect) error {
	var subjects, quoted []string
	for _, s := range found {
		subject := "vars." + s.name
		if s.key != "" {
			subject += fmt.Sprintf(" (its key %q)", s.key)
		}
		subjects = append(subjects, subject)
		if name := fmt.Sprintf("%q", s.secret()); !slices.Contains(quoted, name) {
			quoted = append(quoted, name)
		}
	}
	do := "do"
	if len(subjects) == 2 {
		do = "does"
	}
	return fmt.Errorf("%s looks like a secret, and so %s %s: make them secrets (\"secrets\": [%s], and 'pinwheel secrets set'), or name them in \"plain\" (a --var: with --plain)",
		subjects[0], do, strings.Join(subjects[1:], ", "), strings.Join(quoted, ", "))
}

// keysIn are the keys of all objects in a value of encoding/json.
func keysIn(value any) (keys []string) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			keys = append(append(keys, name), keysIn(v[name])...)
		}
	case []any:
		for _, item := range v {
			keys = append(keys, keysIn(item)...)
		}
	}
	return keys
}
