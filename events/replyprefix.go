package events

import (
	"fmt"
	"strings"
)

// OwnerInPrefix stands for the owner of the event in a reply prefix, so that no owner's event can name another owner's
// inbox.
const OwnerInPrefix = "{owner}"

// CheckReplyPrefix returns an error that says what is wrong with p as a prefix of Reply-To, or nil.
func CheckReplyPrefix(p string, s Subjects) error {
	_, after, has := strings.Cut(p, OwnerInPrefix)
	switch {
	case p == "", strings.HasPrefix(p, "$"), s.Owned(p), strings.ContainsAny(p, " \t\r\n*>"):
	case has && !strings.HasPrefix(after, "."), strings.Contains(after, OwnerInPrefix):
	default:
		return nil
	}
	return fmt.Errorf("reply prefix %q: a prefix is not empty, has no wildcards, "+
		"begins neither with $ nor with %s and a dot, and has a dot after %s", p, s, OwnerInPrefix)
}

// hasReplyPrefix reports whether subject begins with prefix, for an event of owner.
func hasReplyPrefix(subject, prefix, owner string) bool {
	before, after, has := strings.Cut(prefix, OwnerInPrefix)
	rest, ok := strings.CutPrefix(subject, before)
	if !has || !ok {
		return ok
	}
	rest, ok = strings.CutPrefix(rest, owner)
	return ok && ValidName(owner) && strings.HasPrefix(rest, after)
}
