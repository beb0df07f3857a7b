// Package deploy takes a source file to every process of the fleet: it is bundled to one ES module,
// checked in a real isolate, given a version, stored in JetStream, and activated by whoever watches.
//
//	Build                 source file and manifest → Bundle       (esbuild; every error as file:line:column)
//	Store.Deploy          Bundle → events.Worker → KV record      (compare-and-swap: no number is given twice)
//	Watcher.Run           KV records → Installer                  (all kept versions, then every change)
//	FileWatcher.Run       saved files → a callback                (pinwheel dev)
//
// A version never changes once stored. Records are small JSON documents in one KV bucket, key
// "<owner>.<name>", whose history is the list of versions; code that does not fit a record lies in an
// object store beside it. The package runs no handlers: loading a module to see what it exports is
// done by a Checker that the caller supplies.
//
// The files beside the Go code are for operators: Dockerfile, nats/nats.conf, and docker-compose.yml at the root.
package deploy
