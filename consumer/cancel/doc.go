// Package cancel knows which events must not start any more because somebody cancels them, and how those ended that a
// process had when that was asked. It knows neither an event in flight nor JetStream.
package cancel
