// Package machine has the processes of a measurement: it starts servers and programs as children, reads what each uses
// of the machine, and paces what is sent to them. It knows nothing of what is measured.
package machine
