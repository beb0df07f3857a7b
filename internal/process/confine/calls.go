package confine

// refused are the calls that no process of the fleet makes, and that code which has broken out would: they reach other
// processes, the kernel's rarely used parts, or other namespaces. It is a list of what is refused, not of what is
// allowed: Go, V8 and libc call what is new in the kernel as soon as it is there.
var refused = []string{
	// other processes
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
	"move_pages", "migrate_pages",
	// interfaces of the kernel with many flaws, which nothing here uses
	"io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "perf_event_open", "userfaultfd",
	"keyctl", "add_key", "request_key", "fanotify_init", "fanotify_mark", "quotactl", "personality", "memfd_secret",
	"mq_open", "mq_unlink", "shmget", "shmat", "shmctl", "semget", "semop", "semctl", "semtimedop",
	"msgget", "msgsnd", "msgrcv", "msgctl",
	// files past their paths
	"open_by_handle_at", "name_to_handle_at",
	// mounts and namespaces
	"mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen", "fsconfig", "fsmount", "fspick",
	"mount_setattr", "unshare", "setns",
	// users and capabilities
	"setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups", "setfsuid", "setfsgid", "capset",
	// the machine
	"kexec_load", "init_module", "finit_module", "delete_module", "swapon", "swapoff", "reboot", "acct",
	"syslog", "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup",
	"mknodat",
}

// refusedOf are further calls of an architecture.
var refusedOf = map[string][]string{
	"amd64": {"mknod", "iopl", "ioperm", "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl", "kexec_file_load",
		"create_module", "get_kernel_syms", "query_module", "lookup_dcookie"},
	"arm64": {"kexec_file_load", "lookup_dcookie"},
}

// refusedLater are the calls that a process makes while it starts and never again. Listening sockets are inherited;
// bind stands for all others, and listen without it takes a port too.
var refusedLater = []string{
	"execve", "execveat", "bind", "listen",
	// signals to others; kill and tgkill have conditions
	"tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "pidfd_open",
}
