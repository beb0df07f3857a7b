// Package control has the operations on a running fleet: queries and changes. Operations do the work, with request and
// answer types of their own. Each process has a Server that answers the same requests on NATS, and a Client sends them.
// The commands, and everything else that controls a fleet, share these types. docs/reference/control.md describes the
// endpoints.
package control
