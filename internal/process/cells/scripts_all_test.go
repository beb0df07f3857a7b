//go:build hostile

package cells

const everyHostileScript = true
