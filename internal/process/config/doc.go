// Package config reads the configuration. It declares the environment variables, checks their values, and makes what
// every process needs first: a logger and a connection to NATS. No other package reads PINWHEEL_* variables.
package config
