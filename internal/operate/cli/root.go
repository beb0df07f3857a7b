package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/process/cells/cell"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
	"github.com/pinwheel-run/pinwheel/internal/process/modulecheck"
)

// env is the environment of a command.
type env struct {
	*terminal.Terminal
	connection
	version string
	load    func() (config.Config, error)
	parsed  bool // the command line is valid: later errors are not about it
}

func newEnv(in io.Reader, out, err io.Writer, load func() (config.Config, error)) *env {
	t := terminal.New(in, out, err)
	return &env{Terminal: t, connection: connection{warnings: t.Err}, load: load}
}

// Main runs the pinwheel command with the configuration from the environment. It returns the exit code.
func Main(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cell.BeChild()
	modulecheck.BeChild()
	return run(args, newEnv(stdin, stdout, stderr, config.Load))
}

// MainWith does what Main does with a given configuration, for example from a test. It does not read the environment.
func MainWith(cfg config.Config, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	load := func() (config.Config, error) { return cfg, cfg.Validate() }
	return run(args, newEnv(stdin, stdout, stderr, load))
}

func run(args []string, e *env) int {
	e.version = config.Version()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first signal asks the command to end. A second one has its default effect: it ends the process at once.
	defer context.AfterFunc(ctx, stop)()
	root := newRoot(e)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err != nil && !e.parsed && exitCode(err) != exitUsage {
		err = usage("%w", err)
	}
	e.complain(cmd, err)
	return exitCode(err)
}

// complain writes err. Each line begins with the name of the command.
func (e *env) complain(cmd *cobra.Command, err error) {
	var ee *exitError
	if errors.As(err, &ee); err == nil || ee != nil && ee.err == nil {
		return
	}
	text := err.Error()
	if p := e.natsErr.Load(); p != nil {
		text += "\n" + (*p).Error()
	}
	if errors.Is(err, context.Canceled) {
		text = "interrupted: " + text
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			fmt.Fprintln(e.Err, "pinwheel: "+line)
		}
	}
	if exitCode(err) == exitUsage {
		fmt.Fprintf(e.Err, "pinwheel: see '%s'\n", cmp.Or(ee.see, cmd.CommandPath()+" --help"))
	}
}

// needsConfig marks commands that need a valid environment.
const needsConfig = "needs-config"

func newRoot(e *env) *cobra.Command {
	root := &cobra.Command{
		Use:   "pinwheel",
		Short: "Run JavaScript and TypeScript event handlers on NATS JetStream",
		Long: "Pinwheel runs JavaScript and TypeScript event handlers on NATS JetStream.\n\n" +
			"Settings are variables of the environment: see 'pinwheel help environment'.",
		Example:       "  pinwheel dev examples/hello.js\n  pinwheel send fetch dev/hello --data '{\"name\":\"Ada\"}'",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Annotations[needsConfig] != "" {
				var err error
				if e.cfg, err = e.load(); err != nil {
					return &exitError{code: exitUsage, err: err, see: "pinwheel help environment"}
				}
			}
			e.parsed = true
			return nil
		},
	}
	root.SetIn(e.In)
	root.SetOut(e.Out)
	root.SetErr(e.Err)
	root.Version = e.version
	root.SetVersionTemplate("pinwheel {{.Version}}\n")
	root.SetFlagErrorFunc(flagWithHint)
	deployments, pauses := deploymentCommands{e}, pauseCommands{e}
	root.AddCommand(
		newDevCommand(e), newServeCommand(e),
		deployer{e}.root(), versionCommands{e}.root(), deployments.root(), deployments.promote(), deployments.rollback(),
		deployments.alias(),
		workerCommands{e}.root(), ownerCommands{e}.root(), kvCommands{storeCommands{e, "namespace"}}.root(),
		objectCommands{storeCommands{e, "bucket"}}.root(), secretCommands{e}.root(),
		newSendCommand(e), newTailCommand(e), newTopCommand(e), deadCommands{e}.root(), scheduleCommands{e}.root(),
		sourceCommands{e}.root(), pauses.pause(), pauses.resume(), pauses.paused(), eventCommands{e}.root(),
		newAuditCommand(e), runCommands{e}.root(), newUsageCommand(e), resourceCommands{e}.root(),
		newDoctorCommand(e), newConsoleCommand(e), newTypesCommand(e), newSchemaCommand(e), newVersionCommand(e),
		newManCommand(e), newEnvironmentTopic(),
	)
	e.completeArgs(root)
	return root
}

// command completes c so that it runs f with the environment's configuration in e.cfg.
func (e *env) command(c cobra.Command, f func(ctx context.Context, args []string) error) *cobra.Command {
	c.Annotations = map[string]string{needsConfig: "yes"}
	c.RunE = func(cmd *cobra.Command, args []string) error { return f(cmd.Context(), args) }
	return &c
}

// group is a command that has only subcommands.
func group(c cobra.Command, subcommands ...*cobra.Command) *cobra.Command {
	names := make([]string, len(subcommands))
	for i, s := range subcommands {
		names[i] = s.Name()
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("%s needs a command: %s", cmd.Name(), strings.Join(names, ", "))
		}
		return usage("%s has no command %q: it has %s%s", cmd.Name(), args[0], strings.Join(names, ", "),
			didYouMean(cmd.Commands(), args[0], ""))
	}
	c.AddCommand(subcommands...)
	return &c
}

func newVersionCommand(e *env) *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Example: "  pinwheel version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return e.tell(asJSON, map[string]string{"version": e.version}, "pinwheel %s", e.version)
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// jsonFlag adds --json to a command that prints one fact.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print a JSON object")
}

// tell prints what a command has done: fact as JSON, or a line for people.
func (e *env) tell(asJSON bool, fact any, format string, args ...any) error {
	if asJSON {
		return e.Object(fact)
	}
	return e.Say(format, args...)
}

// newEnvironmentTopic is a help topic without a command.
func newEnvironmentTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("Settings are variables of the environment. One that is unknown or has a wrong value is refused.\n")
	for _, v := range config.Variables() {
		fmt.Fprintf(&b, "\n%s\n    %s.\n    It is %s.\n", v.Name, v.Meaning, v.Allowed)
		if v.Default != "" {
			fmt.Fprintf(&b, "    Default: %s\n", v.Default)
		}
		if v.File != "" {
			fmt.Fprintf(&b, "    Or %s names a file with the value.\n", v.File)
		}
	}
	return &cobra.Command{Use: "environment", Short: "The variables that configure Pinwheel", Long: b.String()}
}

// newManCommand writes a page for each command and topic. It is hidden because packages and archives bring the pages:
// deploy/dist makes them with it. The date in them is that of SOURCE_DATE_EPOCH, so that they are equal for equal
// binaries.
func newManCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "man DIR", Short: "Write manual pages", Example: "  pinwheel man /usr/local/share/man/man1", Hidden: true,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := doc.GenManHeader{Section: "1", Source: "pinwheel " + e.version, Manual: "Pinwheel"}
			if err := doc.GenManTree(root, &header, args[0]); err != nil {
				return err
			}
			for _, topic := range root.Commands() { // GenManTree leaves topics out
				if topic.IsAdditionalHelpTopicCommand() {
					if err := writeTopic(topic, header, args[0]); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

func writeTopic(topic *cobra.Command, header doc.GenManHeader, dir string) error {
	f, err := os.Create(filepath.Join(dir, "pinwheel-"+topic.Name()+".1"))
	if err != nil {
		return err
	}
	if err := doc.GenMan(topic, &header, f); err != nil {
		return err
	}
	return f.Close()
}
