package manifest

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a value that is taken from the environment. workers.Bindings bounds all vars together.
const maxFromEnvironment = 128 << 10

// reference is ${NAME}, an escaped $${, or another ${.
var reference = regexp.MustCompile(`\$?\$\{(?:([A-Za-z_][A-Za-z0-9_]*)\})?`)

// expandVars replaces ${NAME} in vars by what the deployer's environment has. $${ stands for the characters ${.
func (m *Manifest) expandVars(lookup Lookup) error {
	if lookup == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.JSON)) {
		if strings.Contains(m.JSON[name], "${") {
			return m.Fault("vars."+name, "vars.%s has ${, which is a variable of the environment only in vars that are strings: write the value, or parse a string in the handler", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Vars)) {
		value, err := m.expand("vars."+name, m.Vars[name], lookup)
		if err != nil {
			return err
		}
		m.Vars[name] = value
	}
	return nil
}

func (m *Manifest) expand(field, value string, lookup Lookup) (string, error) {
	var err error
	total := 0
	fail := func(format string, args ...any) string {
		if err == nil {
			err = m.Fault(field, format, args...)
		}
		return ""
	}
	expanded := reference.ReplaceAllStringFunc(value, func(found string) string {
		name, whole := strings.CutSuffix(strings.TrimLeft(found, "$"), "}")
		name = strings.TrimPrefix(name, "{")
		switch {
		case err != nil:
			return ""
		case strings.HasPrefix(found, "$$"):
			return found[1:]
		case !whole:
			return fail("%s has ${ without a name and a brace after it: write ${NAME} for a variable of the environment, or $${ for the characters themselves", field)
		}
		if LooksSecret(name) && !slices.Contains(m.Plain, name) { // under another name it would be stored as it is
			return fail("%s wants ${%s}, which looks like a secret: make it one, or name it in \"plain\"", field, name)
		}
		text, missing := lookup(name)
		if total += len(text); total > maxFromEnvironment {
			return fail("%s has more than %d bytes from the environment", field, maxFromEnvironment)
		}
		if missing != nil {
			return fail("%s wants ${%s}: %v", field, name, missing)
		}
		return text
	})
	return expanded, err
}
