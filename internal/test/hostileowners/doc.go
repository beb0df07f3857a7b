// Package hostileowners attacks a real fleet as an owner of deploy/nats/users.conf can. Its tests say what harm other owners took.
package hostileowners
