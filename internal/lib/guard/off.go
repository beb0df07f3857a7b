//go:build unguarded

package guard

import (
	"os"
	"strings"
	"sync"
)

// Variable is the environment variable that names the guards to switch off, with commas between them.
const Variable = "UNGUARDED"

var off = sync.OnceValue(func() map[Guard]bool {
	guards := map[Guard]bool{}
	for name := range strings.SplitSeq(os.Getenv(Variable), ",") {
		guards[Guard(name)] = true
	}
	return guards
})

// Off reports whether g is switched off.
func (g Guard) Off() bool { return off()[g] }
