// Package schedule keeps events that wait for their time. It makes the events of schedules (ticks), delays events that
// are to run later, replaces the events of earlier ticks, and lists, pauses and cancels schedules and delayed events.
//
// A Store needs no running consumer. The consumer uses Ticker, Delays, Replacer, Waiting and Cancels.
package schedule
