package workers

import (
	"fmt"
	"strings"

	"github.com/pinwheel-run/pinwheel/events"
)

// MaxConsume is the most patterns of Policy.Consume.
const MaxConsume = 100

// consumePattern is a pattern of Policy.Consume: [CONNECTION/]KIND:NAME[:SUBJECTS], or [CONNECTION/]subject:SUBJECTS.
type consumePattern struct {
	connection string
	kind       string // stream, kv, objects or subject
	name       string // "ORDERS", or "SHOP_*" for all that begin so
	subjects   string // "" = all
}

// parseConsume reads a pattern. The error says what is allowed.
func parseConsume(text string) (p consumePattern, err error) {
	rest := text
	if connection, after, ok := strings.Cut(text, "/"); ok {
		if !events.ValidName(connection) {
			return p, fmt.Errorf("%.80q: before the slash is the name of a connection of PINWHEEL_SOURCES", text)
		}
		p.connection, rest = connection, after
	}
	kind, name, ok := strings.Cut(rest, ":")
	p.kind, p.name = kind, name
	switch kind {
	case "stream", "kv", "objects":
		p.name, p.subjects, _ = strings.Cut(name, ":")
		if bare := strings.TrimSuffix(p.name, "*"); bare != "" {
			err = checkAssetName(bare, kind == "stream")
		}
		switch {
		case err != nil:
			return p, fmt.Errorf("%.80q: %w", text, err)
		case p.subjects != "" && kind == "objects":
			return p, fmt.Errorf("%.80q: an object store is granted as a whole", text)
		case p.subjects != "":
			err = CheckSubjectPattern(p.subjects)
		}
	case "subject":
		p.name, p.subjects = "", name
		err = CheckSubjectPattern(name)
	default:
		ok = false
	}
	if !ok || p.name == "" && p.subjects == "" {
		return p, fmt.Errorf("%.80q: it is stream:NAME, stream:NAME:SUBJECTS, kv:BUCKET, kv:BUCKET:KEYS, objects:BUCKET "+
			"or subject:SUBJECTS, and CONNECTION/ before it for one of PINWHEEL_SOURCES", text)
	}
	return p, err
}

// grants reports whether the pattern has all that s may get.
func (p consumePattern) grants(s Source) bool {
	if p.connection != s.Connection {
		return false
	}
	name, filters := "", s.Subjects
	switch p.kind {
	case "stream":
		name = s.Stream
	case "kv":
		name, filters = s.KV, s.Keys
	case "objects":
		name, filters = s.Objects, nil
	case "subject":
		return s.Subject != "" && Covers([]string{p.subjects}, s.Subject)
	}
	before, wild := strings.CutSuffix(p.name, "*")
	switch {
	case name == "", !wild && p.name != name, wild && !strings.HasPrefix(name, before):
		return false
	case p.subjects == "" || p.subjects == ">":
		return true
	case len(filters) == 0:
		return false
	}
	for _, f := range filters {
		if !Covers([]string{p.subjects}, f) {
			return false
		}
	}
	return true
}

func checkConsume(list []string) error {
	if len(list) > MaxConsume {
		return fmt.Errorf("consume has %d: at most %d are allowed", len(list), MaxConsume)
	}
	for i, text := range list {
		if _, err := parseConsume(text); err != nil {
			return fmt.Errorf("consume[%d] is no pattern: %w", i, err)
		}
	}
	return nil
}

// MayConsume reports whether the owner may have the source.
func (p Policy) MayConsume(s Source) bool {
	for _, text := range p.Consume {
		if c, err := parseConsume(text); err == nil && c.grants(s) {
			return true
		}
	}
	return false
}

// MayConsumeAll returns an error that begins with the path of the first source that the owner is not granted.
func (p Policy) MayConsumeAll(sources []Source) error {
	for i, s := range sources {
		if p.MayConsume(s) {
			continue
		}
		granted := "it is granted nothing"
		if len(p.Consume) > 0 {
			granted = "it is granted " + strings.Join(p.Consume, " ")
		}
		return fmt.Errorf("sources[%d] is %s, which the owner is not granted: %s, and an operator grants more with "+
			"'pinwheel owners set OWNER --consume'", i, s, granted)
	}
	return nil
}
