package deploy

import _ "embed"

//go:embed types/runtime.d.ts
var types string

// Types is the text of runtime.d.ts: declarations in TypeScript of what a worker has beside the web platform.
func Types() string { return types }
