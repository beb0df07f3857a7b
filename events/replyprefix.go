package events

import (
	"fmt"
	"strings"
)

// OwnerInPrefix stands in a reply prefix for the owner of the event, so that no owner's event can name another's inbox.
const OwnerInPrefix = "{owner}"

// CheckReplyPrefix returns an error that says what is wrong with what a Reply-To may begin with, or nil.
func CheckReplyPrefix(p string, s Subjects) error {
	_, after, has := strings.Cut(p, OwnerInPrefix)
	if p == "" || strings.HasPrefix(p, "$") || s.Owned(p) || strings.ContainsAny(p, " \t\r\n*>") || has && !strings.HasPrefix(after, ".") || strings.Contains(after, OwnerInPrefix) {
		return fmt.Errorf("reply prefix %q: a prefix is not empty, has no wildcards, begins neither with $ nor with %s and a dot, and has a dot after %s", p, s, OwnerInPrefix)
	}
	return nil
}

// hasReplyPrefix reports whether subject begins with prefix for an event of owner.
func hasReplyPrefix(subject, prefix, owner string) bool {
	before, after, has := strings.Cut(prefix, OwnerInPrefix)
	rest, ok := strings.CutPrefix(subject, before)
	if !has || !ok {
		return ok
	}
	rest, ok = strings.CutPrefix(rest, owner)
	return ok && ValidName(owner) && strings.HasPrefix(rest, after)
}
