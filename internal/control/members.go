package control

import "strings"

const bye = "bye "

// MembersSubject is where the processes of a fleet announce themselves.
func MembersSubject(prefix string) string { return prefix + ".control.members" }

// ParseMember parses the announcement of a process: its ID, a space and its node, after "bye " when it leaves. A
// process of an earlier binary sends no node; then ok is false.
func ParseMember(text string) (m Member, left, ok bool) {
	text, left = strings.CutPrefix(text, bye)
	m.ID, m.Node, ok = strings.Cut(text, " ")
	return m, left, ok
}

// Hello is the message that a process sends while it is there.
func (m Member) Hello() string { return m.ID + " " + m.Node }

// Bye is the message that a process sends when it leaves.
func (m Member) Bye() string { return bye + m.Hello() }
