// Package hostileowners attacks a real fleet as an owner of deploy/nats/users.conf can. Its tests report the harm to
// other owners.
package hostileowners
