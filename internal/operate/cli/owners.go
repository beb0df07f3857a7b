package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// ownerCommands are the commands about owners.
type ownerCommands struct{ *env }

func (e ownerCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "owners", Short: "Set what owners may have", Example: "  pinwheel owners set acme --weight 2 --max-running 20",
	}, e.ls(), e.set(), e.rm())
}

func (e ownerCommands) ls() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls", Short: "List the owners that have a policy of their own", Args: cobra.NoArgs, Example: "  pinwheel owners ls",
		Long: "Lists the owners that have a policy, and what it sets. Everything else, and every other owner, follows the fleet's configuration.",
	}, func(ctx context.Context, _ []string) error {
		if err := e.refuseOwner("this command"); err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			all, err := control.Ask(ctx, c, control.OwnersList, control.None{})
			if err != nil {
				return err
			}
			return printPolicies(e.Terminal, all.Owners, settingsOf(ctx, c), asJSON)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// policyFlags are the fields that owners set can change.
type policyFlags struct {
	p         workers.Policy
	cpu, wall time.Duration
}

func (e ownerCommands) set() *cobra.Command {
	var f policyFlags
	var c *cobra.Command
	asJSON := false
	c = e.command(cobra.Command{
		Use: "set OWNER", Short: "Change what an owner may have", Args: cobra.ExactArgs(1),
		Long: "Changes what an owner may have. Only the named values change; 0 returns a value to the fleet's configuration.\n" +
			"Running processes take it up within moments. A ceiling lowers the limits of workers that are deployed already,\n" +
			"and workers that ask for more cannot be deployed.",
		Example: "  pinwheel owners set acme --weight 2 --max-running 20\n  pinwheel owners set acme --cpu 200ms --worker-heap 64",
	}, func(ctx context.Context, args []string) error {
		if n := c.Flags().NFlag(); n == 0 || n == 1 && asJSON {
			return usage("nothing to set: name at least one of the flags")
		}
		if err := events.CheckName("owner", args[0]); err != nil {
			return usage("%w", err)
		}
		f.p.Ceilings.CPU, f.p.Ceilings.Wall = workers.Millis(f.cpu), workers.Millis(f.wall)
		if err := f.p.Validate(); err != nil {
			return usage("%w", err)
		}
		if err := e.refuseOwner("this command"); err != nil {
			return err
		}
		policy, err := f.named(c)
		if err != nil {
			return err
		}
		return e.withFleet(ctx, func(c *control.Client) error {
			r := control.SetOwner{OwnerName: control.OwnerName{Owner: args[0]}, Policy: policy}
			p, err := control.Ask(ctx, c, control.OwnersSet, r)
			if err != nil {
				return err
			}
			return printPolicies(e.Terminal, map[string]workers.Policy{args[0]: p.Policy}, settingsOf(ctx, c), asJSON)
		})
	})
	f.flags(c.Flags())
	jsonFlag(c, &asJSON)
	return c
}

func (f *policyFlags) flags(fl *pflag.FlagSet) {
	fl.IntVar(&f.p.Weight, "weight", 0, "share of CPU time beside others")
	fl.IntVar(&f.p.MaxRunning, "max-running", 0, "events in progress in a process")
	fl.IntVar(&f.p.MaxQueued, "max-queued", 0, "events that wait in a process; more are parked")
	fl.IntVar(&f.p.FleetMaxRunning, "fleet-max-running", 0, "events in progress in all processes together")
	fl.IntVar(&f.p.FleetMaxQueued, "fleet-max-queued", 0, "events that wait in all processes together; more are parked")
	fl.IntVar(&f.p.Calls, "calls", 0, "calls that are stored in a second; more are answered 429")
	fl.IntVar(&f.p.CallBurst, "call-burst", 0, "calls that are stored at once; by default as many as in a second")
	fl.IntVar(&f.p.CallBytes, "call-bytes", 0, "bytes of calls that are stored in a second")
	fl.IntVar(&f.p.Sends, "sends", 0, "tasks that its workers send in a second; more are refused. By default as many as calls")
	fl.IntVar(&f.p.SendBytes, "send-bytes", 0, "bytes that its workers send in a second; by default as many as of calls")
	fl.IntVar(&f.p.MaxIsolates, "max-isolates", 0, "isolates in a process")
	fl.IntVar(&f.p.HeapMB, "heap", 0, "MB of all its isolates in a process")
	fl.StringVar(&f.p.Group, "group", "", "owners of the same group share isolates: name owners that trust each other; \"\" for none")
	fl.StringVar((*string)(&f.p.Compilers), "compilers", "", "compilers of V8 that the code of its workers gets, within what the fleet has: full, or baseline for none that optimizes; \"\" for what the fleet has")
	fl.BoolVar(&f.p.WASM, "wasm", false, "let its workers have modules of WebAssembly, with the compilers full")
	fl.StringVar((*string)(&f.p.Cell), "cell", "", "process in which its workers run: shared with all others, own for a cell of its own or of its group, or the name of a cell that owners share; \"\" for what the fleet has")
	fl.IntVar(&f.p.MaxWorkers, "max-workers", 0, fmt.Sprintf("workers that its people may have by deploys of their own; by default %d",
		workers.DefaultMaxWorkers))
	fl.IntVar(&f.p.AssetBytes, "asset-bytes", 0, fmt.Sprintf("bytes of all stored files, for deploys of its own people; by default %d",
		workers.DefaultAssetBytes))
	fl.IntVar(&f.p.CodeBytes, "code-bytes", 0, fmt.Sprintf("bytes of all kept versions, for deploys of its own people; by default %d",
		workers.DefaultCodeBytes))
	fl.IntVar(&f.p.KVBytes, "kv-bytes", 0, "bytes that its workers store by KV bindings")
	fl.IntVar(&f.p.CacheBytes, "cache-bytes", 0, "bytes that its workers keep in caches")
	fl.IntVar(&f.p.ObjectBytes, "object-bytes", 0, fmt.Sprintf("bytes that its workers store by objects bindings; by default %d",
		workers.DefaultObjectBytes))
	fl.IntVar(&f.p.BindingCalls, "binding-calls", 0, fmt.Sprintf("calls of bindings in a second and process; by default %d",
		workers.DefaultBindingCalls))
	fl.StringVar((*string)(&f.p.Runs), "runs", "", "which of its ended attempts the run history keeps: none, failures, all, or failures and a share of the successes like 1%; \"\" for what the fleet keeps")
	fl.StringSliceVar(&f.p.NATSPublish, "nats-publish", nil, "subjects that its workers may publish to by NATS bindings, with commas between and wildcards: orders.>; \"\" for none")
	fl.StringSliceVar(&f.p.NATSRequest, "nats-request", nil, "subjects that its workers may ask by NATS bindings; \"\" for none")
	fl.StringSliceVar(&f.p.Consume, "consume", nil, "sources that its workers may have, with commas between: stream:ORDERS, stream:SHOP_*:orders.>, kv:FLAGS, objects:UPLOADS, subject:sensors.>; \"\" for none")
	fl.StringSliceVar(&f.p.Hosts, "hosts", nil, "hosts that the routes of its workers may name, with commas between: shop.example, *.example for all below, * for all; \"\" for none")
	f.ceilings(fl)
}

// ceilings defines the flags of limits of workers.
func (f *policyFlags) ceilings(fl *pflag.FlagSet) {
	fl.DurationVar(&f.cpu, "cpu", 0, "most CPU time of a run")
	fl.DurationVar(&f.wall, "wall", 0, "most time of a run")
	fl.IntVar(&f.p.Ceilings.HeapMB, "worker-heap", 0, "most MB of an isolate")
	fl.IntVar(&f.p.Ceilings.Subrequests, "subrequests", 0, "most subrequests of a run")
	fl.IntVar(&f.p.Ceilings.Sends, "worker-sends", 0, "most tasks that a run sends")
	fl.IntVar(&f.p.Ceilings.LogBytes, "log-bytes", 0, "most console output of a run")
}

// policyFields are the fields of the flags.
var policyFields = map[string]string{
	"weight": "weight", "max-running": "maxRunning", "max-queued": "maxQueued",
	"fleet-max-running": "fleetMaxRunning", "fleet-max-queued": "fleetMaxQueued",
	"calls": "calls", "call-burst": "callBurst", "call-bytes": "callBytes", "sends": "sends", "send-bytes": "sendBytes",
	"max-isolates": "maxIsolates", "heap": "heapMB", "group": "group", "compilers": "compilers", "cell": "cell",
	"wasm":        "wasm",
	"max-workers": "maxWorkers", "code-bytes": "codeBytes", "asset-bytes": "assetBytes",
	"kv-bytes": "kvBytes", "cache-bytes": "cacheBytes", "object-bytes": "objectBytes", "binding-calls": "bindingCalls",
	"runs":  "runs",
	"hosts": "hosts", "nats-publish": "natsPublish", "nats-request": "natsRequest",
	"consume": "consume",
}

// ceilingFields are the fields of the flags that are ceilings.
var ceilingFields = map[string]string{
	"cpu": "cpuMs", "wall": "wallMs", "worker-heap": "heapMB", "subrequests": "subrequests", "worker-sends": "sends",
	"log-bytes": "logBytes",
}

// named returns the fields of the policy that the command line names, also those that it sets to zero.
func (f *policyFlags) named(c *cobra.Command) (json.RawMessage, error) {
	f.p.Hosts, f.p.NATSPublish, f.p.NATSRequest = given(f.p.Hosts), given(f.p.NATSPublish), given(f.p.NATSRequest)
	f.p.Consume = given(f.p.Consume)
	policy, err := namedFields(c, policyFields, f.p)
	if err != nil {
		return nil, err
	}
	ceilings, err := namedFields(c, ceilingFields, f.p.Ceilings)
	if err != nil {
		return nil, err
	}
	if len(ceilings) > 0 {
		policy["ceilings"] = ceilings
	}
	return json.Marshal(policy)
}

// namedFields returns the fields of a struct whose flags are given, by their names in JSON.
func namedFields(c *cobra.Command, fields map[string]string, from any) (map[string]any, error) {
	named, v := map[string]any{}, reflect.ValueOf(from)
	for flag, field := range fields {
		if !c.Flags().Changed(flag) {
			continue
		}
		for i := range v.NumField() {
			if name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ","); name == field {
				named[field] = v.Field(i).Interface()
			}
		}
		if _, ok := named[field]; !ok {
			return nil, fmt.Errorf("a policy has no field %s", field)
		}
	}
	return named, nil
}

// given are the values of a flag that takes a list; "" is none.
func given(list []string) []string {
	return slices.DeleteFunc(list, func(text string) bool { return text == "" })
}

func (e ownerCommands) rm() *cobra.Command {
	var data, yes, asJSON bool
	c := e.command(cobra.Command{
		Use: "rm OWNER", Short: "Remove the policy of an owner, or its data", Args: cobra.ExactArgs(1),
		Long: "Removes the policy of an owner: what the fleet's configuration says is for it again. What its workers have stored by bindings stays,\n" +
			"and the command says how much that is. --data removes it too, for good; --yes confirms that. Workers, secrets and dead letters have\n" +
			"commands of their own.",
		Example: "  pinwheel owners rm acme\n  pinwheel owners rm acme --data --yes",
	}, func(ctx context.Context, args []string) error {
		if err := events.CheckName("owner", args[0]); err != nil {
			return usage("%w", err)
		}
		if data && !yes && !config.IsTerminal(e.In) {
			return usage("--data removes everything that the workers of %s have stored: confirm it with --yes", args[0])
		}
		return e.remove(ctx, args[0], data, yes, asJSON)
	})
	c.Flags().BoolVar(&data, "data", false, "remove what its workers have stored by bindings, too")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	jsonFlag(c, &asJSON)
	return c
}

func (e ownerCommands) remove(ctx context.Context, owner string, data, yes, asJSON bool) error {
	return e.withRemote(ctx, func(c *control.Client, r *control.Remote) error {
		d, err := r.Data(ctx, owner, int64(e.cfg.OwnerKVBytes))
		if err != nil {
			return err
		}
		streams, err := d.Streams(ctx)
		if err != nil {
			return err
		}
		if data && len(streams) > 0 && !yes && !e.Asks(fmt.Sprintf("remove all data of %s? %s", owner, storedText(streams))) {
			return errors.New("nothing is removed")
		}
		if _, err := control.Ask(ctx, c, control.OwnersRemove, control.OwnerName{Owner: owner}); err != nil {
			return err
		}
		text := "its data stays (--data removes it)"
		if data {
			if err := d.Remove(ctx); err != nil {
				return err
			}
			e.record(ctx, r, "owners.rm", owner, map[string]any{"owner": owner, "all": true}) // no process removes the data
			text = "removed its data"
		}
		told := fmt.Sprintf("%s has what the fleet's configuration says", owner)
		if len(streams) > 0 {
			told += fmt.Sprintf("\n%s: %s", text, storedText(streams))
		}
		return e.tell(asJSON, map[string]any{"owner": owner, "data": streams, "dataRemoved": data}, "%s", told)
	})
}

// storedText lists streams with their sizes.
func storedText(streams []bindings.Stored) string {
	var l list
	for _, s := range streams {
		l.add(true, "%d bytes in %s", s.Bytes, s.Stream)
	}
	return l.String()
}

// settingsOf asks for what the fleet has for all owners. It is zero when no process tells: the policies are known all
// the same.
func settingsOf(ctx context.Context, c *control.Client) control.Settings {
	s, err := control.Ask(ctx, c, control.GetSettings, control.None{})
	if err != nil {
		return control.Settings{}
	}
	return s
}

// cellText says in which cell an owner is: the fleet's where its policy has none.
func cellText(p workers.Policy, fleet workers.Cell) string {
	if got := p.Cell.OrOf(fleet); p.Cell == "" && got != workers.CellShared {
		return fmt.Sprintf("%s (fleet)", got)
	}
	return cmp.Or(string(p.Cell), "-")
}

// compilersText says what an owner gets: the fleet's where its policy allows more.
func compilersText(p workers.Policy, fleet workers.Compilers) string {
	if got := p.Compilers.Within(fleet); got != p.Compilers.OrDefault() {
		return fmt.Sprintf("%s (fleet)", got)
	}
	return cmp.Or(string(p.Compilers), "-")
}

// yesText is yes, or nothing.
func yesText(v bool) string {
	if v {
		return "yes"
	}
	return "-"
}

// printPolicies prints policies by owner, beside what the fleet has.
func printPolicies(
	to *terminal.Terminal, all map[string]workers.Policy, fleet control.Settings, asJSON bool,
) error {
	l := to.List(asJSON, "OWNER", "WEIGHT", "RUNNING", "QUEUED", "FLEET", "CALLS", "ISOLATES", "HEAP MB", "GROUP",
		"COMPILERS", "WASM", "CELL", "DEPLOYS", "HOSTS", "CEILINGS")
	n := func(v int) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprint(v)
	}
	for _, owner := range slices.Sorted(maps.Keys(all)) {
		p := all[owner]
		one := struct {
			Owner string `json:"owner"`
			workers.Policy
		}{owner, p}
		err := l.Add(one, owner, n(p.Weight), n(p.MaxRunning), n(p.MaxQueued), fleetShare(p), callLimits(p), n(p.MaxIsolates),
			n(p.HeapMB), cmp.Or(p.Group, "-"), compilersText(p, fleet.Compilers), yesText(p.WASM), cellText(p, fleet.Cell),
			deployBounds(p), cmp.Or(strings.Join(p.Hosts, ", "), "-"), ceilings(p.Ceilings))
		if err != nil {
			return err
		}
	}
	return l.End()
}

// fleetShare describes what the owner may use in all processes together.
func fleetShare(p workers.Policy) string {
	var l list
	l.add(p.FleetMaxRunning != 0, "%d running", p.FleetMaxRunning)
	l.add(p.FleetMaxQueued != 0, "%d queued", p.FleetMaxQueued)
	return l.String()
}

// callLimits describes the limits of the call bridge.
func callLimits(p workers.Policy) string {
	var l list
	l.add(p.Calls != 0, "%d/s", p.Calls)
	l.add(p.CallBurst != 0, "%d at once", p.CallBurst)
	l.add(p.CallBytes != 0, "%d bytes/s", p.CallBytes)
	l.add(p.Sends != 0, "%d sends/s", p.Sends)
	l.add(p.SendBytes != 0, "%d bytes of sends/s", p.SendBytes)
	return l.String()
}

// deployBounds describes what the owner's own deploys are bound to.
func deployBounds(p workers.Policy) string {
	var l list
	l.add(p.MaxWorkers != 0, "%d workers", p.MaxWorkers)
	l.add(p.CodeBytes != 0, "%d bytes of code", p.CodeBytes)
	l.add(p.AssetBytes != 0, "%d bytes of files", p.AssetBytes)
	return l.String()
}

// list collects descriptions of the fields that are set.
type list []string

func (l *list) add(set bool, format string, args ...any) {
	if set {
		*l = append(*l, fmt.Sprintf(format, args...))
	}
}

func (l list) String() string {
	if l == nil {
		return "-"
	}
	return strings.Join(l, ", ")
}

// ceilings describes the limits that are set.
func ceilings(l workers.Limits) string {
	var parts list
	parts.add(l.CPU != 0, "cpu %s", l.CPU.Duration())
	parts.add(l.Wall != 0, "wall %s", l.Wall.Duration())
	parts.add(l.HeapMB != 0, "heap %d MB", l.HeapMB)
	parts.add(l.Subrequests != 0, "%d subrequests", l.Subrequests)
	parts.add(l.Sends != 0, "%d sends", l.Sends)
	parts.add(l.LogBytes != 0, "%d bytes of log", l.LogBytes)
	return parts.String()
}
