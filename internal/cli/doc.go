// Package cli is the pinwheel command: it reads the configuration, makes the rooms, and wires them
// to each other. It is the only package that knows them all, and the only one that reads the environment.
package cli
