// Package secrets encrypts and decrypts the secrets of workers with age. It stores nothing, and knows no NATS.
//
// A command seals a value to the fleet's recipients, which are public. Only processes that have the identities, which
// are private, open it.
package secrets
