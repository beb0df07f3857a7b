// Package perowner shares what a process does among owners. Rates limits how much of something an owner may use in a
// second: requests, or CPU time of Go. Queue keeps the work of each owner apart, within bounds, and does it in turn, so
// that one owner's flood delays and displaces only that owner's own work. Turns lets callers work when it is their
// owner's turn, and charges owners for the time.
//
// An owner is a name in a subject. It need not exist, so no type keeps anything for an owner that asks for
// nothing.
package perowner
