package hostileowners

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/fleettest"
)

// hidden is a secret of the deploying machine that acme must not learn.
const hidden = "the-control-token-of-the-fleet"

// readDeployingMachine has the operators of the fleet deploy files from acme. The sources import the environment of the
// deploying process and files outside the project: by their names, links and source maps.
func readDeployingMachine(t *testing.T, f *fleet) (harm string) {
	const use = "; export default { task: () => String(x) };"
	for name, prepare := range map[string]func(dir string) (source string){
		"environ": func(string) string { return `import x from "/proc/self/environ" with {type: "text"}` + use },
		"parent":  func(string) string { return `import x from "../../secret.txt"` + use },
		"link": func(dir string) string {
			require.NoError(t, os.Symlink("../../secret.txt", dir+"/x.txt"))
			return `import x from "./x.txt"` + use
		},
		"fault": func(dir string) string {
			require.NoError(t, os.Symlink("/proc/self/environ", dir+"/tsconfig.json"))
			return "const x = 1" + use
		},
		"map": func(dir string) string {
			text := `{"version": 3, "mappings": "AAAA", "names": [], "sources": ["../../secret.txt"]}`
			require.NoError(t, os.WriteFile(dir+"/x.map", []byte(text), 0o600))
			return "const x = 1" + use + "\n//# sourceMappingURL=x.map"
		},
	} {
		dir := t.TempDir()
		project := filepath.Join(dir, "uploads", "acme")
		require.NoError(t, os.MkdirAll(project, 0o755))
		require.NoError(t, os.WriteFile(dir+"/secret.txt", []byte(hidden), 0o600))
		require.NoError(t, os.WriteFile(project+"/"+name+".js", []byte(prepare(project)), 0o600))
		deploy := fleettest.Command(append([]string{"PINWHEEL_NATS_URL=" + f.url, "PINWHEEL_NATS_USER=fleet",
			"PINWHEEL_NATS_PASSWORD=fleet-secret", "PINWHEEL_CONTROL_TOKEN=" + hidden}, f.env...),
			"deploy", project+"/"+name+".js", "--owner", "acme")
		out, err := deploy.CombinedOutput()
		if strings.Contains(string(out), hidden) {
			harm += fmt.Sprintf("%s: the message quotes the secret; ", name)
		}
		if err != nil {
			continue
		}
		if r := call(t, f.as("acme"), events.Task, "acme", name, nil); strings.Contains(string(r.Body), hidden) {
			harm += fmt.Sprintf("%s: the worker returns the secret; ", name)
		}
		if kept, err := f.js.KeyValue(t.Context(), "PINWHEEL_WORKERS"); err == nil {
			if e, err := kept.Get(t.Context(), "acme."+name); err == nil && strings.Contains(string(e.Value()), hidden) {
				harm += fmt.Sprintf("%s: the bundle has the secret; ", name)
			}
		}
	}
	return harm
}
