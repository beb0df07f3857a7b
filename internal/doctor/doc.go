// Package doctor looks at a NATS and at the fleet on it, and says what is not as it should be and what to do. It changes nothing.
package doctor
