// Package deploy brings a bundle to every process of the fleet: it checks it in a real isolate, gives it a version and
// stores it in JetStream. Each process that watches activates it. Package deploy/bundle makes the bundle.
//
//	Store.Deploy          Bundle → workers.Worker → KV record      (compare-and-swap: no number is given twice)
//	Watcher.Run           KV records → Installer                  (all kept versions, then every change)
//	Policies.Watch        KV policies → a callback                (what each owner may use)
//
// A stored version never changes. Records are small JSON documents in one KV bucket with the key "<owner>.<name>". The
// history of a key is the list of versions. Code that does not fit a record is in an object store. The package runs no
// handlers: the caller supplies a Checker that loads a module and reports what it exports.
//
// The files beside the Go code are for operators: Dockerfile, helm, kustomize, nats, prometheus, systemd, and
// docker-compose.yml at the root of the repository.
package deploy
