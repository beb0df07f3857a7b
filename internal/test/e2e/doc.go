// Package e2e has only tests. They start processes of a fleet, in the test process or as the pinwheel command, and use
// them as publishers, HTTP clients, owners and operators do.
package e2e
