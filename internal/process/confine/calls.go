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

// inCells are the calls that a cell makes after it has started. V8, Go and libc need them for memory, threads, time and
// signals, and the cell to read from what it has inherited and to write to it. Some have conditions, and are not here.
var inCells = []string{
	// memory
	"munmap", "mprotect", "mremap", "madvise", "mincore", "brk",
	"pkey_alloc", "pkey_mprotect", "pkey_free",
	// threads
	"futex", "set_robust_list", "rseq", "gettid", "getpid", "sched_yield", "sched_getaffinity", "membarrier",
	"getpriority", "setpriority", "exit", "exit_group", "set_tid_address", "sched_getparam", "sched_getscheduler",
	// time and other figures
	"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "getrusage", "sysinfo", "uname",
	"getrandom", "getcpu", "times", "getuid", "geteuid", "getgid", "getegid",
	// signals to itself, and timers that send them
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "rt_sigtimedwait", "restart_syscall",
	"timer_create", "timer_settime", "timer_delete", "setitimer",
	// what it has inherited
	"read", "write", "readv", "writev", "pread64", "close", "fstat", "lseek",
	"shutdown", "getsockname", "getpeername", "dup", "dup3",
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "eventfd2", "pipe2", "ppoll",
}

// inCellsOf are further calls of an architecture.
var inCellsOf = map[string][]string{
	"amd64": {"epoll_wait", "poll", "time", "arch_prctl"},
	"arm64": {},
}

// known are calls that are refused in a cell as those that are not permitted. All others that it does not make are
// refused as those that the kernel does not have.
var known = []string{
	"openat", "openat2", "execve", "execveat", "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4",
	"ptrace", "process_vm_readv", "process_vm_writev", "unshare", "setns", "mount", "umount2", "pivot_root", "chroot",
	"chdir", "memfd_create", "bpf", "perf_event_open", "userfaultfd", "keyctl", "io_uring_setup", "personality",
	"setrlimit", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo",
	"unlinkat", "mkdirat", "readlinkat", "truncate", "ftruncate", "setuid", "setgid", "setresuid", "setresgid",
	"capset",
}

// knownOf are further calls of an architecture.
var knownOf = map[string][]string{
	"amd64": {"open", "creat", "fork", "vfork", "unlink", "mkdir", "readlink"},
	"arm64": {},
}
