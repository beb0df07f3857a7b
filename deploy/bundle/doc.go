// Package bundle makes one ES module of a worker's project, with what its manifest says. It knows neither NATS nor the
// store: package deploy stores what it makes.
//
//	Build             source file or directory → Bundle   (esbuild; every error as file:line:column)
//	ParseManifest     manifest file → workers.Spec         (checked, for who has no source)
//	Bundle.Hash       what two versions that behave the same have in common
//	Check             a Bundle that another process made
//	FileWatcher.Run   saved files → a callback            (pinwheel dev)
//
// The author of a project chooses what it imports, and the machine may have files that the author must not see. So
// every read goes through a project, which knows the directories that may be read.
package bundle
