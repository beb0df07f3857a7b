// Package limit limits what an owner may have this process do: calls and sends per second, and how many of its calls
// and parts of bodies wait to be stored. One owner's use does not reduce another owner's limits.
package limit
