package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/bindings"
	"github.com/pinwheel-run/pinwheel/internal/config"
	"github.com/pinwheel-run/pinwheel/internal/control"
)

// namespace is a KV namespace or a bucket of objects of an owner, as the command line names it.
type namespace struct{ owner, name string }

func (n namespace) String() string { return n.owner + "/" + n.name }

// parseStore parses OWNER/NAME. what is what the name is one of: namespace or bucket.
func parseStore(text, what string) (n namespace, err error) {
	var both bool
	if n.owner, n.name, both = strings.Cut(text, "/"); !both {
		return n, usage("%s: write OWNER/%s", text, strings.ToUpper(what))
	}
	if err = events.CheckName("owner", n.owner); err == nil {
		err = events.CheckName(what, n.name)
	}
	if err != nil {
		return n, usage("%w", err)
	}
	return n, nil
}

func newKVCommand(e *env) *cobra.Command {
	return group(cobra.Command{
		Use: "kv", Short: "Read and change the keys and values of KV bindings",
		Long: "Reads and changes what workers keep in KV namespaces. A worker that binds {\"kv\": {\"CACHE\": \"cache\"}} uses the namespace cache of its\n" +
			"owner. Changes are recorded with their keys, without values: see 'pinwheel audit'.",
		Example: "  pinwheel kv ls acme/cache --prefix user:\n  pinwheel kv get acme/cache user:42",
	}, newKVLs(e), newKVGet(e), newKVPut(e), newKVRm(e))
}

// keyValues are the keys and values of an owner.
type keyValues interface {
	Keys(ctx context.Context, namespace, prefix string, each func(bindings.Key) error) error
	Get(ctx context.Context, namespace, key string) (*bindings.Value, error)
	Put(ctx context.Context, namespace, key string, v bindings.Value, ttl time.Duration) error
	Delete(ctx context.Context, namespace, key string) error
}

// withData calls f with the namespace of the first argument.
func withData(ctx context.Context, e *env, args []string, f func(keyValues, namespace) error) error {
	if atDoor(e) {
		return withStoreAtDoor(e, args[0], "namespace", func(o ownedStore) error { return f(doorKeys{o}, o.namespace) })
	}
	return withStore(ctx, e, args[0], "namespace", bindings.ErrNoData, func(c *control.Remote, owner string) (keyValues, error) {
		return c.Data(ctx, owner, int64(e.cfg.OwnerKVBytes))
	}, f)
}

// withStore calls f with what open opens, of the owner in text: OWNER/NAME. what is what the name is one of. none is
// the error of f when the owner has stored nothing of that kind.
func withStore[D any](ctx context.Context, e *env, text, what string, none error, open func(*control.Remote, string) (D, error), f func(D, namespace) error) error {
	n, err := parseStore(text, what)
	if err != nil {
		return err
	}
	c, err := e.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	d, err := open(c, n.owner)
	if err != nil {
		return err
	}
	err = f(d, n)
	if errors.Is(err, none) {
		return fmt.Errorf("%s: %w yet", n.owner, err)
	}
	return err
}

func newKVLs(e *env) *cobra.Command {
	var prefix string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER/NAMESPACE", Short: "List keys, sorted by bytes", Args: cobra.ExactArgs(1),
		Example: "  pinwheel kv ls acme/cache --prefix user:",
	}, func(ctx context.Context, args []string) error {
		return withData(ctx, e, args, func(d keyValues, n namespace) error {
			t, enc := e.table(), json.NewEncoder(e.out)
			enc.SetEscapeHTML(false)
			if !asJSON {
				fmt.Fprintln(t, "KEY\tEXPIRES\tMETADATA")
			}
			err := d.Keys(ctx, n.name, prefix, func(k bindings.Key) error {
				if asJSON {
					return enc.Encode(k)
				}
				expires, metadata := "-", "-"
				if k.Expiration != 0 {
					expires = stamped(time.Unix(k.Expiration, 0))
				}
				if len(k.Metadata) > 0 {
					metadata = brief(string(k.Metadata))
				}
				_, err := fmt.Fprintf(t, "%s\t%s\t%s\n", quoted(k.Name), expires, metadata)
				return err
			})
			return errors.Join(err, t.Flush())
		})
	})
	c.Flags().StringVar(&prefix, "prefix", "", "only keys that begin with it")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

func newKVGet(e *env) *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "get OWNER/NAMESPACE KEY", Short: "Print the value of a key", Args: cobra.ExactArgs(2),
		Long: "Writes the bytes of the value to standard output, and nothing else. On a terminal, control characters are replaced.\n" +
			"Exit code 1: the key is not there.",
		Example: "  pinwheel kv get acme/cache user:42",
	}, func(ctx context.Context, args []string) error {
		return withData(ctx, e, args, func(d keyValues, n namespace) error {
			v, err := d.Get(ctx, n.name, args[1])
			switch {
			case err != nil:
				return err
			case v == nil:
				return fmt.Errorf("%s has no key %q", n, args[1])
			case asJSON:
				return printValueJSON(e, args[1], v)
			}
			return printValue(e, v.Data)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object: key, metadata, and value (text) or base64 (bytes that are no text)")
	return c
}

// printValue prints a value, which a worker has written. A terminal does not get its control characters.
func printValue(e *env, data []byte) error {
	if config.IsTerminal(e.out) {
		if !utf8.Valid(data) {
			return fmt.Errorf("the value has %d bytes that are no text: write them to a file with > FILE, or use --json", len(data))
		}
	}
	_, err := e.data().Write(data)
	return err
}

func printValueJSON(e *env, key string, v *bindings.Value) error {
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
	enc := json.NewEncoder(e.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(shown)
}

// valueFlags say where kv put has the value from, and what it stores with it.
type valueFlags struct {
	value, file, metadata string
	ttl                   time.Duration
	asJSON                bool
}

func newKVPut(e *env) *cobra.Command {
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
		data, err := f.read(e, c)
		if err != nil {
			return err
		}
		return withData(ctx, e, args, func(d keyValues, n namespace) error {
			if err := d.Put(ctx, n.name, args[1], bindings.Value{Data: data, Metadata: json.RawMessage(f.metadata)}, f.ttl); err != nil {
				return err
			}
			record(ctx, e, "kv.put", n.owner, map[string]any{"namespace": n.name, "key": args[1], "value": len(data)})
			return printDone(e, f.asJSON, "set", "namespace", n, args[1], uint64(len(data)))
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

func (f *valueFlags) read(e *env, c *cobra.Command) ([]byte, error) {
	if c.Flags().Changed("value") {
		return []byte(f.value), nil
	}
	return readInput(e, f.file, "value", bindings.MaxValue)
}

// readInput reads a file, or standard input if there is no name. what is what it is, of at most most bytes.
func readInput(e *env, name, what string, most int) ([]byte, error) {
	in := e.in
	if name != "" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, int64(most)+1))
	if err == nil && len(data) > most {
		err = fmt.Errorf("the %s has more than %d bytes", what, most)
	}
	return data, err
}

func newKVRm(e *env) *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "rm OWNER/NAMESPACE KEY", Short: "Remove a key", Args: cobra.ExactArgs(2),
		Long: "Removes a key with its value. Exit code 1: the key is not there.", Example: "  pinwheel kv rm acme/cache user:42",
	}, func(ctx context.Context, args []string) error {
		return withData(ctx, e, args, func(d keyValues, n namespace) error {
			v, err := d.Get(ctx, n.name, args[1])
			if err == nil && v == nil {
				err = fmt.Errorf("%s has no key %q", n, args[1])
			}
			if err == nil {
				err = d.Delete(ctx, n.name, args[1])
			}
			if err != nil {
				return err
			}
			record(ctx, e, "kv.rm", n.owner, map[string]any{"namespace": n.name, "key": args[1]})
			return printDone(e, asJSON, "removed", "namespace", n, args[1], uint64(len(v.Data)))
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

// quoted shows a key, which a worker has written: in quotes if it is not plain.
func quoted(key string) string {
	if q := strconv.Quote(key); q[1:len(q)-1] != key || strings.ContainsRune(key, ' ') {
		return q
	}
	return key
}

// printDone says what was done with a key. what is what its store is: namespace or bucket.
func printDone(e *env, asJSON bool, verb, what string, n namespace, key string, size uint64) error {
	if asJSON {
		return json.NewEncoder(e.out).Encode(map[string]any{"owner": n.owner, what: n.name, "key": key, "bytes": size, "done": verb})
	}
	_, err := fmt.Fprintf(e.out, "%s %s of %s, %d bytes\n", verb, quoted(key), n, size)
	return err
}
