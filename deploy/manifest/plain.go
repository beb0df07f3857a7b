package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
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

// CheckPlainJSON does what CheckPlain does for vars that are JSON texts. A key of an object in them, however deep,
// counts as a name.
func CheckPlainJSON(vars map[string]string, plain []string) error {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if err := CheckPlain(map[string]string{name: ""}, plain); err != nil {
			return err
		}
		var value any
		if err := json.Unmarshal([]byte(vars[name]), &value); err != nil {
			return fmt.Errorf("vars.%s is no JSON text: %w", name, err)
		}
		if key, found := secretKey(value, plain); found && !slices.Contains(plain, name) {
			return fmt.Errorf("vars.%s has the key %q, which looks like a secret: make it one (\"secrets\": [%q], and 'pinwheel secrets set'), or name the key in \"plain\"", name, key, key)
		}
	}
	return nil
}

// secretKey finds a key that looks like a secret, in a value of encoding/json.
func secretKey(value any, plain []string) (key string, found bool) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if LooksSecret(name) && !slices.Contains(plain, name) {
				return name, true
			}
			if key, found := secretKey(v[name], plain); found {
				return key, true
			}
		}
	case []any:
		for _, item := range v {
			if key, found := secretKey(item, plain); found {
				return key, true
			}
		}
	}
	return "", false
}

// CheckPlain returns an error for the first of vars that looks like a secret and is not among plain. vars are stored as
// they are, and everybody who may read the fleet's NATS reads them. The error begins with the path of the var, and does
// not quote its value. Versions that are stored already are not checked.
func CheckPlain(vars map[string]string, plain []string) error {
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if LooksSecret(name) && !slices.Contains(plain, name) {
			return fmt.Errorf("vars.%s looks like a secret: make it one (\"secrets\": [%q], and 'pinwheel secrets set'), or name it in \"plain\" (a --var: with --plain)", name, name)
		}
	}
	return nil
}
