// Package workers is what runs: Worker, one version of the code of an owner with its Spec, and how versions become
// active: Deployment, Rollout, and Policy, which bounds an owner. It has their JSON, their defaults and their bounds.
//
// It is separate from package events, which is what publishers and the fleet send each other: an event names a worker,
// and knows nothing else of it. The package imports events and the standard library only. A Worker never changes once
// it was created.
package workers
