// Requests of node:http for which nobody waits, with options whose getters make more of them.
// outcome: ok, cpu
import { builtin } from "pinwheel:node";

const http = builtin("http");

export default {
  fetch() {
    let made = 0;
    const options = () => ({
      host: "127.0.0.1",
      get port() {
        if (++made < 2000) http.request(options()).on("error", () => {}).end("x".repeat(100));
        return 1;
      },
    });
    try {
      http.request(options()).end();
    } catch {} // the stack ends
    for (let i = 0; i < 2000; i++) http.get({ host: "127.0.0.1", port: 1 }).on("error", () => {});
    return new Response("ok");
  },
};
