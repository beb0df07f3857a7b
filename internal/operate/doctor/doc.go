// Package doctor checks a NATS and the fleet on it: versions, limits, streams and consumers, durability, clocks,
// progress, permissions. It reports what is wrong, and what to do about it. It changes nothing.
package doctor
