package workers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// NATSSubjects are what a NATS binding may use: patterns of subjects, in which the token * stands for any token, and >
// at the end for one or more.
type NATSSubjects struct {
	Publish []string `json:"publish,omitempty"`
	Request []string `json:"request,omitempty"`
}

const (
	// maxSubject is the longest subject or pattern of one, bytes.
	maxSubject = 256
	// MaxSubjects is how many patterns a list may have.
	MaxSubjects = 100
)

// CheckSubject returns an error that says what is allowed, when a message of a handler cannot have this subject,
// whatever its worker and its owner may: one with wildcards or empty tokens, or one of NATS itself.
func CheckSubject(subject string) error {
	if strings.ContainsAny(subject, "*>") {
		return fmt.Errorf("subject %.80q has a wildcard", subject)
	}
	return CheckSubjectPattern(subject)
}

// CheckSubjectPattern returns an error that says what is allowed, when text is no pattern of subjects of handlers.
func CheckSubjectPattern(text string) error {
	if len(text) > maxSubject {
		return fmt.Errorf("subject %.80q… has %d bytes: at most %d are allowed", text, len(text), maxSubject)
	}
	for i := range len(text) {
		if text[i] <= ' ' || text[i] > '~' {
			return fmt.Errorf("subject %.80q has another character than the visible ones of ASCII", text)
		}
	}
	if text != "" && (text[0] == '$' || text[0] == '_') {
		return fmt.Errorf("subject %.80q begins with %c: such subjects are those of NATS itself", text, text[0])
	}
	for rest, more := text, true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		switch {
		case token == "":
			return fmt.Errorf("subject %.80q has an empty token", text)
		case len(token) > 1 && strings.ContainsAny(token, "*>") || token == ">" && more:
			return fmt.Errorf("subject %.80q: a wildcard is the token *, or > at the end", text)
		}
	}
	return nil
}

// Covers reports whether each subject of pattern is one of some pattern in list. A subject is a pattern of itself.
func Covers(list []string, pattern string) bool {
	return slices.ContainsFunc(list, func(wide string) bool { return covers(wide, pattern) })
}

func covers(wide, pattern string) bool {
	for {
		w, moreWide, wideGoesOn := strings.Cut(wide, ".")
		p, morePattern, goesOn := strings.Cut(pattern, ".")
		switch {
		case w == ">":
			return true
		case p == ">" || w != "*" && w != p:
			return false
		case !wideGoesOn || !goesOn:
			return wideGoesOn == goesOn
		}
		wide, pattern = moreWide, morePattern
	}
}

// checkSubjects returns an error that begins with name and the index of what is wrong.
func checkSubjects(name string, list []string) error {
	if len(list) > MaxSubjects {
		return fmt.Errorf("%s has %d subjects: at most %d are allowed", name, len(list), MaxSubjects)
	}
	for i, text := range list {
		if err := CheckSubjectPattern(text); err != nil {
			return fmt.Errorf("%s[%d] is no subject: %w", name, i, err)
		}
	}
	return nil
}

func checkNATS(bindings map[string]NATSSubjects) error {
	for _, name := range slices.Sorted(maps.Keys(bindings)) {
		b := bindings[name]
		if len(b.Publish) == 0 && len(b.Request) == 0 {
			return fmt.Errorf("nats.%s has neither publish nor request: name the subjects", name)
		}
		for _, err := range []error{checkSubjects("nats."+name+".publish", b.Publish),
			checkSubjects("nats."+name+".request", b.Request)} {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// MayReach returns an error that begins with the path of the first subject of NATS bindings that the owner is not
// granted.
func (p Policy) MayReach(b Bindings) error {
	for _, name := range slices.Sorted(maps.Keys(b.NATS)) {
		for _, l := range []struct {
			list           string
			asked, granted []string
		}{{"publish", b.NATS[name].Publish, p.NATSPublish}, {"request", b.NATS[name].Request, p.NATSRequest}} {
			for i, text := range l.asked {
				if !Covers(l.granted, text) {
					return fmt.Errorf("nats.%s.%s[%d] is %s, which the owner is not granted: an operator grants it with 'pinwheel owners set OWNER --nats-%s %s'",
						name, l.list, i, text, l.list, text)
				}
			}
		}
	}
	return nil
}

// natsValues are the values of NATS bindings: JSON texts.
type natsValues map[string]NATSSubjects

func (v *natsValues) get() map[string]string {
	if len(*v) == 0 {
		return nil
	}
	texts := make(map[string]string, len(*v))
	for name, subjects := range *v {
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // > is a wildcard
		_ = e.Encode(subjects) // lists of strings: no error
		texts[name] = strings.TrimSuffix(text.String(), "\n")
	}
	return texts
}

func (v *natsValues) set(texts map[string]string) {
	*v = make(natsValues, len(texts))
	for name, text := range texts {
		var subjects NATSSubjects
		_ = json.Unmarshal([]byte(text), &subjects) // get has made it
		(*v)[name] = subjects
	}
}

func checkNATSTexts(texts map[string]string) error {
	var v natsValues
	v.set(texts)
	return checkNATS(v)
}
