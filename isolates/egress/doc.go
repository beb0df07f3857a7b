// Package egress sends the requests of fetch() and opens the WebSockets of handlers, under one guard.
//
// A Client checks each address at the moment of connecting. Each owner has its own Connections. Exchange sends one
// request and passes the response on. Upgrade opens a WebSocket. Errors are in words for the author of a handler.
// The package does not depend on V8 or on runs.
package egress
