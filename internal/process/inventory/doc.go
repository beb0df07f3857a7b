// Package inventory knows what a fleet has in JetStream: all its resources, the settings that decide them, which of
// them differ from a configuration, and what a change would lose.
package inventory
