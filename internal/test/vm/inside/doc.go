// Package inside tests the shipped unit of systemd from inside a virtual machine (package vm), as its root. It changes
// the machine that it runs in.
package inside
