package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/operate/cli/terminal"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
)

// kvCommands are the commands about KV namespaces.
type kvCommands struct{ storeCommands }

func (e kvCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "kv", Short: "Read and change the keys and values of KV bindings",
		Long: "Reads and changes what workers keep in KV namespaces. A worker that binds {\"kv\": {\"CACHE\": \"cache\"}} uses the namespace cache of its\n" +
			"owner. Changes are recorded with their keys, without values: see 'pinwheel audit'.",
		Example: "  pinwheel kv ls acme/cache --prefix user:\n  pinwheel kv get acme/cache user:42",
	}, e.ls(), e.get(), e.put(), e.rm())
}

// key names a key of a namespace.
func (n namespace) key(key string) control.OwnerKey {
	return control.OwnerKey{Owner: n.owner, Namespace: n.name, Key: key}
}

func (e kvCommands) ls() *cobra.Command {
	var prefix string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER/NAMESPACE", Short: "List keys, sorted by bytes", Args: cobra.ExactArgs(1),
		Example: "  pinwheel kv ls acme/cache --prefix user:",
	}, func(ctx context.Context, args []string) error {
		return e.with(ctx, args[0], func(c *control.Client, n namespace) error {
			p := e.List(asJSON, "KEY", "EXPIRES", "METADATA")
			r := control.ListKeys{Owner: n.owner, Namespace: n.name, Prefix: prefix}
			return printPages(p, keyCells, func(limit int) ([]bindings.Key, bool, error) {
				r.Limit = limit
				page, err := control.Ask(ctx, c, control.KVList, r)
				r.After = page.Next
				return page.Keys, page.Next != "", err
			})
		})
	})
	c.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with it")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// keyCells is a key in a list.
func keyCells(k bindings.Key) []any {
	return []any{quoted(k.Name), stampedOrNone(expiryOf(k)), cmp.Or(brief(string(k.Metadata)), "-")}
}

// expiryOf is when a key is gone; zero = never.
func expiryOf(k bindings.Key) time.Time {
	if k.Expiration == 0 {
		return time.Time{}
	}
	return time.Unix(k.Expiration, 0)
}

func (e kvCommands) get() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "get OWNER/NAMESPACE KEY", Short: "Print the value of a key", Args: cobra.ExactArgs(2),
		Long: "Writes the bytes of the value to standard output, and nothing else. On a terminal, control characters are replaced.\n" +
			"Exit code 1: the key is not there.",
		Example: "  pinwheel kv get acme/cache user:42",
	}, func(ctx context.Context, args []string) error {
		return e.with(ctx, args[0], func(c *control.Client, n namespace) error {
			v, err := control.Value(ctx, c, n.key(args[1]))
			switch {
			case err != nil:
				return err
			case asJSON:
				return e.printJSON(args[1], v)
			}
			return e.printValue(v.Data)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object: key, metadata, and value (text) or base64 (bytes that are no text)")
	return c
}

func (e kvCommands) printJSON(key string, v *bindings.Value) error {
	shown := struct {
		Key      string          `json:"key"`
		Value    *string         `json:"value,omitempty"`
		Base64   []byte          `json:"base64,omitempty"`
		Metadata json.RawMessage `json:"metadata,omitempty"`
	}{Key: key, Metadata: v.Metadata}
	if text := string(v.Data); utf8.ValidString(text) {
		shown.Value = &text
	} else {
		shown.Base64 = v.Data
	}
	return e.Object(shown)
}

// valueFlags say where kv put has the value from, and what it stores with it.
type valueFlags struct {
	value, file, metadata string
	ttl                   time.Duration
	asJSON                bool
}

func (e kvCommands) put() *cobra.Command {
	var f valueFlags
	var c *cobra.Command
	c = e.command(cobra.Command{
		Use: "put OWNER/NAMESPACE KEY", Short: "Set the value of a key", Args: cobra.ExactArgs(2),
		Long:    "Sets the value of a key: that of --value, of the file of --file, or of standard input. What was there before is gone, with its metadata.",
		Example: "  pinwheel kv put acme/cache user:42 --value Ada --ttl 1h\n  pinwheel kv put acme/cache logo --file logo.png --metadata '{\"type\":\"image/png\"}'",
	}, func(ctx context.Context, args []string) error {
		switch {
		case f.file != "" && c.Flags().Changed("value"):
			return usage("--value and --file both name the value: one of them is enough")
		case f.ttl < 0 || f.ttl%time.Second != 0:
			return usage("--ttl %s: it is a whole number of seconds, like 90s or 1h", f.ttl)
		case f.metadata != "" && !json.Valid([]byte(f.metadata)):
			return usage("--metadata is no JSON")
		}
		data, err := f.read(e.Terminal, c)
		if err != nil {
			return err
		}
		return e.with(ctx, args[0], func(c *control.Client, n namespace) error {
			r := control.PutValue{OwnerKey: n.key(args[1]), TTL: int64(f.ttl / time.Second)}
			if f.metadata != "" {
				r.Metadata = json.RawMessage(f.metadata)
			}
			if c.FitsRequest(data) {
				r.Value = data
			} else {
				body, err := e.storeBody(ctx, c, n.owner, data)
				if err != nil {
					return err
				}
				r.Body = &body
			}
			if _, err := control.Ask(ctx, c, control.KVPut, r); err != nil {
				return err
			}
			return e.printDone(f.asJSON, "set", n, args[1], uint64(len(data)))
		})
	})
	fl := c.Flags()
	fl.StringVar(&f.value, "value", "", "the value; other users of the machine can see it")
	fl.StringVar(&f.file, "file", "", "file with the value")
	fl.DurationVar(&f.ttl, "ttl", 0, "time after which the key is gone, in whole seconds; 0 = never")
	fl.StringVar(&f.metadata, "metadata", "", "JSON to keep beside the value, at most 1024 bytes")
	fl.BoolVar(&f.asJSON, "json", false, "print a JSON object")
	return c
}

func (f *valueFlags) read(t *terminal.Terminal, c *cobra.Command) ([]byte, error) {
	if c.Flags().Changed("value") {
		return []byte(f.value), nil
	}
	return t.ReadFile(f.file, "value", bindings.MaxValue)
}

func (e kvCommands) rm() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "rm OWNER/NAMESPACE KEY", Short: "Remove a key", Args: cobra.ExactArgs(2),
		Long: "Removes a key with its value. Exit code 1: the key is not there.", Example: "  pinwheel kv rm acme/cache user:42",
	}, func(ctx context.Context, args []string) error {
		return e.with(ctx, args[0], func(c *control.Client, n namespace) error {
			was, err := control.Ask(ctx, c, control.KVRemove, n.key(args[1]))
			if err != nil {
				return err
			}
			return e.printDone(asJSON, "removed", n, args[1], uint64(was.Bytes))
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}
