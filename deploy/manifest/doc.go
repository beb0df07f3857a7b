// Package manifest reads the documents that say how a worker runs: Pinwheel's own manifest in JSON or YAML, Buntime's
// manifest.yaml, and wrangler's configuration in JSON or TOML.
//
//	Parse        text of any of these → Manifest     (every fault as file:line:column)
//	Schema       a JSON Schema of Pinwheel's own manifest, made from the Go types
//
// Each format is read into the same tree of nodes, which know where they stand. One decoder reads the tree into Go
// structs. It refuses unknown keys. What a foreign format says and Pinwheel cannot keep is refused, and what says
// nothing about running here is listed in Manifest.Ignored: nothing is dropped in silence.
//
// The package reads no files and no environment. Its callers give it text, and bound the length of the text.
package manifest
