// Package assetstore keeps the files of workers in JetStream, and reads them with a cache. Files are named by their
// SHA-256, so equal files of an owner are stored once, and a file never changes. Owners share none.
package assetstore
