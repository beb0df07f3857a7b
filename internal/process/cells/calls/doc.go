// Package calls carries the host calls of a cell to its broker. A cell is a process with V8 and without a network, and
// its broker is the process of the fleet that started it.
//
// The calls are HTTP/2 on one connection that the cell inherited: a request for each call, or for each connection that
// a handler opened. Cancelling a call resets its stream. Bodies have the flow control of HTTP/2, so a call whose answer
// nobody reads holds up no other. Client is the side of the cell: it is what isolates.New needs from outside. Server is
// the side of the broker.
//
// The broker trusts nothing that a cell says. It looks up what a call names among what the cell was given. A request
// that names something else, or that no Client writes, is a lie: Server reports it, and the broker ends the cell. What
// the real bindings, files, services and servers answer is no lie, whatever it is. Its text reaches the handler
// unchanged.
//
// Each request and each answer begins with a head (see head): fields in a fixed order, then perhaps a body. A failure
// that comes after the head of an answer is in a trailer.
package calls
