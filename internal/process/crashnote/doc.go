// Package crashnote notes which worker each thread of a process runs, so that it is known when the process has died,
// and keeps an account of the workers during whose runs processes died. It knows neither V8 nor NATS.
package crashnote
