//go:build hostile

package isolates

// wholeSuite: `make hostile` runs every script. It takes minutes and wants both cores for itself.
const wholeSuite = true
