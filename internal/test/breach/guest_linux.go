package breach

import (
	"bytes"
	"context"
	"crypto/ecdh"
	_ "embed" // guest.js
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"filippo.io/age/plugin"
	"golang.org/x/sys/unix"
)

// Aims are what the worker of a guest gets to know.
type Aims struct {
	// File is a path: credentials that no worker may read. KeyFile is that of the fleet's age identities.
	File    string `json:"file"`
	KeyFile string `json:"keyFile"`
	// Dir is a directory in which no worker may write.
	Dir string `json:"dir"`
	// Recipient is the public key of the fleet's first age identity: age1….
	Recipient string `json:"recipient"`
	// SecretPrefix begins a secret of another owner, and TextPrefix a string in the heap of another owner's worker. After
	// each come 32 hexadecimal digits.
	SecretPrefix string `json:"secretPrefix"`
	TextPrefix   string `json:"textPrefix"`
	// NatsIP and NatsPort are the address of NATS, by IPv4.
	NatsIP   string `json:"natsIP"`
	NatsPort int    `json:"natsPort"`
	// Forged is what the guest writes to each descriptor but connections of HTTP: Latin-1.
	Forged string `json:"forged"`
	// Descriptors, Mebibytes and Threads are how many the guest takes.
	Descriptors int `json:"descriptors"`
	Mebibytes   int `json:"mebibytes"`
	Threads     int `json:"threads"`
}

// Loot is what only others than the guest know: attempts that give it have worked.
type Loot struct {
	File, Secret, Text string
	// Arrived reports, after the attempt, whether what the guest has forged has reached somebody. It may wait.
	Arrived func() bool
}

// Answer is what a guest says of an attempt. It may lie.
type Answer struct {
	// Result of a call of the kernel: -errno if it is negative.
	Result int64 `json:"result"`
	// Texts that the guest has read.
	Texts []string `json:"texts"`
	// Error is what its JavaScript threw.
	Error string `json:"error"`
}

// errno is the error of the call; 0 = none.
func (a Answer) errno() unix.Errno { return unix.Errno(max(0, -a.Result)) }

// done reports whether a call of the kernel has done something.
func (a Answer) done() bool { return a.Error == "" && a.Result >= 0 }

// allowed reports whether a call that could do nothing would have been allowed.
func (a Answer) allowed() bool {
	refusals := []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS, unix.EAFNOSUPPORT}
	return a.Error == "" && !slices.Contains(refusals, a.errno())
}

// Attempt is something that code tries which has broken V8.
type Attempt struct {
	Name string
	// Script is an expression of JavaScript, with the functions of guest.js.
	Script string
	// Reached reports whether it worked.
	Reached func(Answer) bool
}

// OwnText is the attempt that works wherever a guest runs: it finds a text of its own. Where it fails, the attempts on
// the texts of others show nothing.
const OwnText = "find its own text in memory"

// Attempts are all. The last one may end the guest's process.
func Attempts(aims Aims, loot Loot) []Attempt {
	has := func(text string) func(Answer) bool {
		return func(a Answer) bool {
			return slices.ContainsFunc(a.Texts, func(one string) bool { return strings.Contains(one, text) })
		}
	}
	atLeast := func(n int) func(Answer) bool { return func(a Answer) bool { return a.Result >= int64(n) } }
	return []Attempt{
		{OwnText, `ownText()`, has("own-text-0123456789abcdef0123456789abcdef")},
		{"find another owner's secret in memory", `texts(aims.secretPrefix)`, has(loot.Secret)},
		{"find another owner's text in memory", `texts(aims.textPrefix)`, has(loot.Text)},
		{"find the age key in memory", `privateKeys(aims.recipient)`, aims.isKey},
		{"read a file of credentials", `readFile(aims.file)`, has(loot.File)},
		{"read the file of the age key", `readFile(aims.keyFile)`, has("AGE-SECRET-KEY-1")},
		{"write a file", `openFile(aims.dir + "/written", O_WRONLY_CREAT)`, Answer.done},
		{"read the parent's environment", `readFile(ofParent("environ"))`, has("=")},
		{"open the parent's memory", `openFile(ofParent("mem"), O_RDWR)`, Answer.done},
		{"trace the parent", `traceParent()`, Answer.done},
		{"signal the parent", `sys("kill", sys("getppid"), SIGURG)`, Answer.done},
		{"fork", `inChild("sched_yield")`, Answer.done},
		{"execute a program", `inChild("execve", path("/bin/true"), 0, 0)`, Answer.done},
		{"become a program", `sys("execve", path("/missing"), 0, 0)`, Answer.allowed},
		{"execute memory", `executeMemory()`, func(a Answer) bool { return a.errno() == unix.ENOEXEC }},
		{"make a namespace", `inChild("unshare", CLONE_NEWUSER)`, Answer.done},
		{"make io_uring", `openRing()`, Answer.done},
		{"connect to NATS", `socketTo(aims.natsIP, aims.natsPort, 0, readSome)`, has("INFO {")},
		{"connect to the metadata of a cloud", `socketTo("169.254.169.254", 80, SOCK_NONBLOCK)`, Answer.allowed},
		{"take descriptors", `descriptors()`, atLeast(aims.Descriptors)},
		{"take memory", `memory()`, atLeast(aims.Mebibytes)},
		{"take threads", `threads(aims.threads)`, atLeast(aims.Threads)},
		{"write to all descriptors", `forge()`, func(Answer) bool { return loot.Arrived() }},
	}
}

// isKey reports whether the private key of the recipient is among the texts.
func (a Aims) isKey(answer Answer) bool {
	return slices.ContainsFunc(answer.Texts, func(text string) bool {
		raw, err := hex.DecodeString(text)
		if err != nil {
			return false
		}
		key, err := ecdh.X25519().NewPrivateKey(raw)
		if err != nil {
			return false
		}
		recipient, err := plugin.EncodeX25519Recipient(key.PublicKey())
		return err == nil && recipient == a.Recipient
	})
}

//go:embed guest.js
var guest string

// Worker is the module of a worker that makes these attempts. It needs a pinwheel with the build tag breach.
func Worker(attempts []Attempt) string {
	var b strings.Builder
	b.WriteString(guest)
	b.WriteString("const attempts = {\n")
	for _, a := range attempts {
		fmt.Fprintf(&b, "  %q: () => %s,\n", a.Name, a.Script)
	}
	b.WriteString("};\n")
	return b.String()
}

// calls are the numbers of the kernel's calls that guest.js makes.
var calls = map[string]int{
	"clone": unix.SYS_CLONE, "close": unix.SYS_CLOSE, "connect": unix.SYS_CONNECT,
	"eventfd2": unix.SYS_EVENTFD2, "execve": unix.SYS_EXECVE, "execveat": unix.SYS_EXECVEAT,
	"exit_group": unix.SYS_EXIT_GROUP, "getpeername": unix.SYS_GETPEERNAME, "getppid": unix.SYS_GETPPID,
	"io_uring_setup": unix.SYS_IO_URING_SETUP, "kill": unix.SYS_KILL, "memfd_create": unix.SYS_MEMFD_CREATE,
	"mmap": unix.SYS_MMAP, "munmap": unix.SYS_MUNMAP, "nanosleep": unix.SYS_NANOSLEEP,
	"openat": unix.SYS_OPENAT, "ptrace": unix.SYS_PTRACE, "read": unix.SYS_READ,
	"sched_yield": unix.SYS_SCHED_YIELD, "sendto": unix.SYS_SENDTO, "socket": unix.SYS_SOCKET,
	"unshare": unix.SYS_UNSHARE, "wait4": unix.SYS_WAIT4, "write": unix.SYS_WRITE,
}

// Result is what came of an attempt.
type Result struct {
	Attempt Attempt
	Answer  Answer
	Reached bool
	// Err says that there was no answer: the guest's process may have ended. Its attempt may have worked before.
	Err error
}

// Try has the worker at url make these attempts, one after the other. Each is a request, which ends with ctx.
func Try(ctx context.Context, url string, aims Aims, attempts []Attempt) (results []Result) {
	for _, a := range attempts {
		r := Result{Attempt: a}
		r.Answer, r.Err = ask(ctx, url, aims, a.Name)
		r.Reached = r.Err == nil && a.Reached(r.Answer)
		results = append(results, r)
	}
	return results
}

// Question is the body of a request that has the worker make an attempt.
func Question(attempt string, aims Aims) ([]byte, error) {
	return json.Marshal(struct {
		Attempt string `json:"attempt"`
		Aims    any    `json:"aims"`
	}{attempt, struct {
		Aims
		Calls map[string]int `json:"calls"`
	}{aims, calls}})
}

func ask(ctx context.Context, url string, aims Aims, attempt string) (answer Answer, err error) {
	body, err := Question(attempt, aims)
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	if err == nil {
		err = json.Unmarshal(text, &answer)
	}
	return answer, err
}
