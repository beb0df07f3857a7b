// Names are looked up for nobody, from callbacks that look up more.
// outcome: ok, cpu
import { builtin } from "pinwheel:node";

const dns = builtin("dns");

export default {
  fetch() {
    const again = () => { dns.lookup("localhost", again); };
    for (let i = 0; i < 5000; i++) dns.resolve4(`${i}.invalid`, i === 0 ? again : () => {});
    return new Response("ok");
  },
};
