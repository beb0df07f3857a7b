// Package vm runs Pinwheel in a virtual machine of its own: Debian, with systemd as its first process. There the
// shipped unit runs as on a server, and has what containers of tests have not: cgroups that are delegated.
//
//	TestMachine → a Debian in a file → qemu → package inside, which tests the unit and says what it finds
//
// For tests with the tag vm only. docs/development/testing.md says what they need.
package vm
