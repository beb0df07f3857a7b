// Package assets finds the files of a worker that answer HTTP requests, and says which file answers which path. It
// stores nothing: internal/env/assetstore does.
package assets
