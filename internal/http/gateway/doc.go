// Package gateway answers HTTP requests with workers. A request becomes a direct event: it waits and runs as the events
// of the stream do, and nothing of it is stored.
//
// The files follow a request: server.go accepts it, address.go finds the worker, client.go the address of its client,
// request.go and body.go make the event, call.go waits for the reply, and response.go writes it.
package gateway
