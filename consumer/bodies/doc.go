// Package bodies transfers bodies that do not fit in one message. Request bodies are stored in parts, also while their
// event runs. Reply bodies are sent in chunks, as far as their requester grants credit.
package bodies
