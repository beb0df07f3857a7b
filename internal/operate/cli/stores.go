package cli

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/client"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
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

// storeCommands have what the commands about KV namespaces and those about buckets of objects share.
type storeCommands struct {
	*env
	what string // what a store is: namespace or bucket
}

// with calls f with the store in text: OWNER/NAME.
func (e storeCommands) with(ctx context.Context, text string, f func(*control.Client, namespace) error) error {
	n, err := parseStore(text, e.what)
	if err == nil {
		err = e.ownOnly(n.owner, text)
	}
	if err != nil {
		return err
	}
	return e.withFleet(ctx, func(c *control.Client) error { return f(c, n) })
}

// printValue prints a value, which a worker has written. A terminal does not get its control characters.
func (e storeCommands) printValue(data []byte) error {
	if config.IsTerminal(e.Out) {
		if !utf8.Valid(data) {
			return fmt.Errorf("the value has %d bytes that are no text: write them to a file with > FILE, or use --json", len(data))
		}
	}
	_, err := e.Data().Write(data)
	return err
}

// printDone says what was done with a key.
func (e storeCommands) printDone(asJSON bool, verb string, n namespace, key string, size uint64) error {
	if asJSON {
		return e.Object(map[string]any{"owner": n.owner, e.what: n.name, "key": key, "bytes": size, "done": verb})
	}
	return e.Say("%s %s of %s, %d bytes", verb, quoted(key), n, size)
}

// quoted shows a key, which a worker has written: in quotes if it is not plain.
func quoted(key string) string {
	if q := strconv.Quote(key); q[1:len(q)-1] != key || strings.ContainsRune(key, ' ') {
		return q
	}
	return key
}

// upload is the connection on which bodies are stored in parts.
type upload struct {
	*client.Client
	close func()
}

// openUpload connects. NATS answers on the inboxes of the owner, where the fleet answers nowhere else.
func (e *connection) openUpload(owner string) (upload, error) {
	nc, err := e.dial(owner)
	if err != nil {
		return upload{}, err
	}
	c, err := client.New(nc, client.Prefix(e.cfg.Prefix))
	if err != nil {
		nc.Close()
		return upload{}, err
	}
	return upload{c, func() { _ = c.Close(); nc.Close() }}, nil
}

// storeBody stores data in parts, as a body of an owner, unless this program needs no parts.
func (e *connection) storeBody(ctx context.Context, c *control.Client, owner string,
	data []byte) (control.UploadedBody, error) {
	if here, err := c.HandlesHere(ctx, owner); err != nil || here {
		return control.InlineBody(data), err
	}
	up, err := e.openUpload(owner)
	if err != nil {
		return control.UploadedBody{}, err
	}
	defer up.close()
	return up.body(ctx, owner, data)
}

func (up upload) body(ctx context.Context, owner string, data []byte) (control.UploadedBody, error) {
	b, err := up.Store(ctx, owner, bytes.NewReader(data))
	return control.UploadedBody{ID: b.ID, Parts: b.Parts, Bytes: len(data)}, err
}
