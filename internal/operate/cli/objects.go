package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/internal/env/bindings"
	"github.com/pinwheel-run/pinwheel/internal/operate/control"
	"github.com/pinwheel-run/pinwheel/internal/process/config"
)

// objectCommands are the commands about buckets of objects.
type objectCommands struct{ storeCommands }

func (e objectCommands) root() *cobra.Command {
	return group(cobra.Command{
		Use: "objects", Short: "Read and change the objects of objects bindings",
		Long: "Reads and changes what workers keep in buckets of objects. A worker that binds {\"objects\": {\"FILES\": \"files\"}} uses the bucket files of\n" +
			"its owner. Changes are recorded with their keys, without data: see 'pinwheel audit'.",
		Example: "  pinwheel objects ls acme/files --prefix img/\n  pinwheel objects get acme/files img/logo.png --file logo.png",
	}, e.ls(), e.get(), e.put(), e.rm())
}

// object names an object of a bucket.
func (n namespace) object(key string) control.OwnerObject {
	return control.OwnerObject{Owner: n.owner, Bucket: n.name, Key: key}
}

func (e objectCommands) ls() *cobra.Command {
	var prefix string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "ls OWNER/BUCKET", Short: "List objects, sorted by the bytes of their keys", Args: cobra.ExactArgs(1),
		Example: "  pinwheel objects ls acme/files --prefix img/",
	}, func(ctx context.Context, args []string) error {
		return e.with(ctx, args[0], func(c *control.Client, b namespace) error {
			p := e.List(asJSON, "KEY", "BYTES", "UPLOADED", "TYPE")
			r := control.ListObjects{Owner: b.owner, Bucket: b.name, Prefix: prefix}
			return printPages(p, objectCells, func(limit int) ([]*bindings.Object, bool, error) {
				r.Limit = limit
				page, err := control.Ask(ctx, c, control.ObjectsList, r)
				r.After = page.Next
				return page.Objects, page.Next != "", err
			})
		})
	})
	c.Flags().StringVar(&prefix, "prefix", "", "only objects whose keys begin with it")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return c
}

// objectCells is an object in a list.
func objectCells(o *bindings.Object) []any {
	return []any{quoted(o.Key), o.Size, stamped(o.Uploaded), cmp.Or(brief(o.ContentType), "-")}
}

func (e objectCommands) get() *cobra.Command {
	var file string
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "get OWNER/BUCKET KEY", Short: "Print the data of an object, or write it to a file", Args: cobra.ExactArgs(2),
		Long: "Writes the data of the object to standard output, and nothing else. On a terminal, control characters are replaced, and data that is no\n" +
			"text is refused. Exit code 1: the object is not there, or was changed while it was read.",
		Example: "  pinwheel objects get acme/files img/logo.png --file logo.png",
	}, func(ctx context.Context, args []string) error {
		if file != "" && asJSON {
			return usage("--file gets the data, and --json prints none: one of them is enough")
		}
		return e.with(ctx, args[0], func(c *control.Client, b namespace) error {
			name := b.object(args[1])
			o, err := control.Object(ctx, c, name)
			switch {
			case err != nil:
				return err
			case asJSON:
				return e.Object(o)
			case file != "":
				return writeFile(file, func(w io.Writer) error { return control.CopyObject(ctx, c, name, o, w) })
			case !config.IsTerminal(e.Out):
				return control.CopyObject(ctx, c, name, o, e.Data())
			case o.Size > maxShown:
				return fmt.Errorf("the object has %d bytes, too many for a terminal: write them to a file with --file", o.Size)
			}
			var data bytes.Buffer
			if err := control.CopyObject(ctx, c, name, o, &data); err != nil {
				return err
			}
			return e.printValue(data.Bytes())
		})
	})
	c.Flags().StringVar(&file, "file", "", "file to write the data to. One that is there is replaced when all data has come")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object that says what the object is, without its data")
	return c
}

// maxShown is how many bytes of an object a terminal gets at most.
const maxShown = 1 << 20

// writeFile makes a file of what write writes. If that fails, what was there before stays.
func writeFile(path string, write func(io.Writer) error) (err error) {
	part := path + ".part"
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(write(f), f.Close()); err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(part))
	}
	return err
}

// objectFlags say what objects put stores.
type objectFlags struct {
	file, contentType string
	metadata          []string
	asJSON            bool
}

func (e objectCommands) put() *cobra.Command {
	var f objectFlags
	c := e.command(cobra.Command{
		Use: "put OWNER/BUCKET KEY", Short: "Store an object", Args: cobra.ExactArgs(2),
		Long: fmt.Sprintf("Stores the data of the file of --file, or of standard input: at most %d MiB. What was there before is gone, with its metadata.", bindings.MaxObject>>20),
		Example: "  pinwheel objects put acme/files img/logo.png --file logo.png --content-type image/png\n" +
			"  pinwheel objects put acme/files notes.txt --metadata author=Ada < notes.txt",
	}, func(ctx context.Context, args []string) error {
		o, err := f.object(args[1])
		if err != nil {
			return err
		}
		data, err := e.ReadFile(f.file, "data", bindings.MaxObject)
		if err != nil {
			return err
		}
		return e.with(ctx, args[0], func(c *control.Client, b namespace) error {
			body, err := e.storeBody(ctx, c, b.owner, data)
			if err != nil {
				return err
			}
			r := control.PutObject{OwnerObject: b.object(o.Key), Body: body, ContentType: o.ContentType, Metadata: o.Metadata}
			if _, err := control.Ask(ctx, c, control.ObjectsPut, r); err != nil {
				return err
			}
			return e.printDone(f.asJSON, "stored", b, o.Key, uint64(len(data)))
		})
	})
	fl := c.Flags()
	fl.StringVar(&f.file, "file", "", "file with the data")
	fl.StringVar(&f.contentType, "content-type", "", "media type of the data, which workers see in httpMetadata")
	fl.StringArrayVar(&f.metadata, "metadata", nil, "`NAME=VALUE` of customMetadata; may be repeated")
	fl.BoolVar(&f.asJSON, "json", false, "print a JSON object")
	return c
}

// object is what the flags say of the object.
func (f *objectFlags) object(key string) (*bindings.Object, error) {
	if f.contentType != "" {
		if kind, _, err := mime.ParseMediaType(f.contentType); err != nil || !strings.Contains(kind, "/") {
			return nil, usage("--content-type %q: it is a media type, like image/png", f.contentType)
		}
	}
	o := &bindings.Object{Key: key, ContentType: f.contentType}
	for _, text := range f.metadata {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, usage("--metadata %q: write it as NAME=VALUE", text)
		}
		if o.Metadata == nil {
			o.Metadata = map[string]string{}
		}
		o.Metadata[name] = value
	}
	return o, nil
}

func (e objectCommands) rm() *cobra.Command {
	var asJSON bool
	c := e.command(cobra.Command{
		Use: "rm OWNER/BUCKET KEY", Short: "Remove an object", Args: cobra.ExactArgs(2),
		Long: "Removes an object with its data. Exit code 1: the object is not there.", Example: "  pinwheel objects rm acme/files img/logo.png",
	}, func(ctx context.Context, args []string) error {
		return e.with(ctx, args[0], func(c *control.Client, b namespace) error {
			was, err := control.Ask(ctx, c, control.ObjectsRemove, b.object(args[1]))
			if err != nil {
				return err
			}
			return e.printDone(asJSON, "removed", b, args[1], was.Bytes)
		})
	})
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}
