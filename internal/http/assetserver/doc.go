// Package assetserver answers HTTP requests with the files of a worker: at which path a page is, redirects and headers
// of the author, what answers where there is no file, encodings, entity tags and ranges. The gateway and the binding of
// a worker's files use it. It knows neither NATS nor V8.
package assetserver
