// Package cgroup bounds processes by cgroups (version 2) where the cgroup of this process is delegated to it: a unit of
// systemd with Delegate=, or a container whose cgroups can be written.
//
//	CGROUP             of the unit, or of the container
//	├─ fleet           this process, and all that it starts
//	└─ cells
//	   ├─ 1            a cell
//	   └─ 2
//
// The kernel allows no processes in a cgroup whose children have limits. So this process moves into a cgroup below its
// own first.
package cgroup
