package isolates

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A var that is JSON is its value in env, in every mode. A string stays a string.
func TestVarsThatAreJSON(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, b *bench) {
		b.cpu = ample
		w := worker("w", `export default { task: (e, env) => [env.FLAGS.beta, env.FLAGS.list[1], typeof env.TEXT, env.N, Object.keys(env).sort(), Object.isFrozen(env), Object.getPrototypeOf(env.FLAGS) === Object.prototype] }`)
		w.Vars = map[string]string{"TEXT": `{"a":1}`}
		w.JSON = map[string]string{"FLAGS": `{"beta":true,"list":[1,"<two>"],"__proto__":{"x":1}}`, "N": "16"}
		o := b.run(w, task("null"))
		require.Nil(t, o.end.Failure)
		require.JSONEq(t, `{"success":true,"data":[true,"<two>","string",16,["FLAGS","N","TEXT"],true,true]}`, string(o.reply.Body))
	})
}
