package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

const (
	// completeTime is how long a shell waits for completions.
	completeTime = 2 * time.Second
	// mostCompletions is how many there are.
	mostCompletions = 200
)

// suggest returns what may stand for an argument that begins with begun. args are those before it.
type suggest func(ctx context.Context, c *control.Client, args []string, begun string) ([]string, error)

// suggestions are the words of a command's usage that the shell completes. A word that means something else elsewhere
// has the name of its group before it.
var suggestions = map[string]suggest{
	"OWNER":           owners,
	"OWNER/WORKER":    workerNames,
	"OWNER[/WORKER]":  workerNames,
	"VERSION":         versions,
	"FROM":            versions,
	"TO":              versions,
	"VERSION[@SHARE]": versions,
	"ID":              letters,
	"ID...":           letters,
	"alias NAME":      aliases,
}

// flagSuggestions are the flags that the shell completes.
var flagSuggestions = map[string]suggest{
	"owner": owners, "worker": workerNames, "version": versions, "to": replayTargets,
}

// completeArgs makes the shell complete the arguments and flags of a command and of those below it.
func (e *env) completeArgs(c *cobra.Command) {
	for _, below := range c.Commands() {
		e.completeArgs(below)
	}
	_, use, _ := strings.Cut(c.Use, " ")
	if words := strings.Fields(use); len(words) > 0 && c.ValidArgsFunction == nil {
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			word := strings.Trim(words[min(len(args), len(words)-1)], "[]")
			if strings.HasPrefix(word, "OWNER[") {
				word += "]"
			}
			if len(args) >= len(words) && !strings.HasSuffix(word, "...") {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			of, known := suggestions[word]
			if !known {
				of = suggestions[c.Parent().Name()+" "+word]
			}
			return e.complete(of, args, begun)
		}
	}
	for flag, of := range flagSuggestions {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag,
				func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
					return e.complete(of, args, begun)
				}) // it fails for flags that the command does not have
		}
	}
}

// complete asks the fleet. Without an answer there are no completions: a shell has no place for the reason.
func (e *env) complete(of suggest, args []string, begun string) (list []string, _ cobra.ShellCompDirective) {
	if of == nil {
		return nil, cobra.ShellCompDirectiveDefault
	}
	var err error
	if e.cfg, err = e.load(); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completeTime)
	defer cancel()
	_ = e.withFleet(ctx, func(c *control.Client) error {
		list, err = of(ctx, c, args, begun)
		return err
	})
	return list, cobra.ShellCompDirectiveNoFileComp
}

func owners(ctx context.Context, c *control.Client, _ []string, begun string) (list []string, err error) {
	found, err := control.Ask(ctx, c, control.OwnersFind, control.FindOwners{Match: begun, Limit: mostCompletions})
	for _, o := range found.Owners {
		if strings.HasPrefix(o.Owner, begun) {
			list = append(list, o.Owner)
		}
	}
	return list, err
}

func workerNames(ctx context.Context, c *control.Client, _ []string, begun string) (list []string, err error) {
	found, err := control.Ask(ctx, c, control.WorkersFind, control.FindWorkers{Match: begun, Limit: mostCompletions})
	for _, w := range found.Workers {
		if name := w.Owner + "/" + w.Name; strings.HasPrefix(name, begun) {
			list = append(list, name)
		}
	}
	return list, err
}

// versionsIn are the versions of the worker in the arguments: after the kind of the event, for send.
func versionsIn(ctx context.Context, c *control.Client, args []string) ([]control.Version, error) {
	i := slices.IndexFunc(args, func(a string) bool { return strings.Contains(a, "/") })
	if i < 0 {
		return nil, nil
	}
	found, err := control.Ask(ctx, c, control.VersionsList, control.WorkerName{Worker: args[i]})
	return found.Versions, err
}

// versions suggests the versions and the aliases of the worker in the arguments.
func versions(ctx context.Context, c *control.Client, args []string, begun string) (list []string, err error) {
	found, err := versionsIn(ctx, c, args)
	for _, v := range found {
		for _, name := range append([]string{v.Version}, v.Aliases...) {
			if strings.HasPrefix(name, begun) {
				list = append(list, fmt.Sprintf("%s\t%s %s", name, stamped(v.DeployedAt), brief(v.Message)))
			}
		}
	}
	return list, err
}

// aliases suggests the aliases of the worker in the arguments.
func aliases(ctx context.Context, c *control.Client, args []string, begun string) (list []string, err error) {
	found, err := versionsIn(ctx, c, args)
	for _, v := range found {
		for _, name := range v.Aliases {
			if strings.HasPrefix(name, begun) {
				list = append(list, name+"\t"+v.Version)
			}
		}
	}
	return list, err
}

// replayTargets suggests the workers of the owner of the letter in the first argument, and after @ their versions.
func replayTargets(ctx context.Context, c *control.Client, args []string, begun string) (list []string, err error) {
	ids, err := letterIDs(args)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	l, err := control.Ask(ctx, c, control.DeadShow, control.LetterID{ID: ids[0]})
	if err != nil {
		return nil, err
	}
	worker, version, both := strings.Cut(begun, "@")
	prefix := l.Owner + "/"
	if !both {
		names, err := workerNames(ctx, c, nil, prefix+worker)
		for _, name := range names {
			list = append(list, strings.TrimPrefix(name, prefix))
		}
		return list, err
	}
	names, err := versions(ctx, c, []string{prefix + cmp.Or(worker, l.Worker)}, version)
	for _, name := range names {
		list = append(list, worker+"@"+name)
	}
	return list, err
}

func letters(ctx context.Context, c *control.Client, _ []string, begun string) (list []string, err error) {
	found, err := control.Ask(ctx, c, control.DeadList,
		control.ListLetters{Newest: true, Filter: control.Filter{Limit: mostCompletions}})
	for _, l := range found.Letters {
		if id := fmt.Sprint(l.ID); strings.HasPrefix(id, begun) {
			list = append(list, fmt.Sprintf("%s\t%s/%s %s: %s", id, l.Owner, l.Worker, l.Reason, brief(l.Message)))
		}
	}
	return list, err
}

// sameAs are words that other programs have for names of commands here.
var sameAs = map[string][]string{
	"ls": {"list"}, "rm": {"remove", "delete", "del"}, "show": {"inspect", "describe"}, "set": {"add", "create"},
}

// didYouMean ends a message about a name that is unknown with those that are like it. before is written before each.
func didYouMean(known []*cobra.Command, name, before string) string {
	like := cobra.Command{SuggestionsMinimumDistance: 2} // distances are measured by the library
	for _, k := range known {
		if k.IsAvailableCommand() {
			like.AddCommand(&cobra.Command{Use: k.Name(), SuggestFor: append(k.SuggestFor, sameAs[k.Name()]...),
				Run: func(*cobra.Command, []string) {}})
		}
	}
	found := slices.Compact(like.SuggestionsFor(name)) // the library names one twice that it finds in two ways
	if len(found) == 0 {
		return ""
	}
	return "; did you mean " + before + strings.Join(found, " or "+before) + "?"
}

// flagWithHint names the flags that are like one that c does not have.
func flagWithHint(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var known []*cobra.Command
	c.Flags().VisitAll(func(f *pflag.Flag) {
		known = append(known, &cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	return fmt.Errorf("%w%s", err, didYouMean(known, unknown.GetSpecifiedName(), "--"))
}
