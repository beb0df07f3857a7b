package events

// User is h without the headers that steer NATS, and without those that look like a dead letter's or like Reply-To: what a handler may see.
func (h Header) User() Header {
	user := make(Header, len(h))
	(&Event{Header: h}).UserHeaders(func(name, value string) { user[name] = append(user[name], value) })
	return user
}
