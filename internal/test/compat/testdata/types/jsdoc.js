/// <reference path="../pinwheel.d.ts" />
export default /** @satisfies {Handler<{ GREETING: string }>} */ ({
  fetch(request, env) {
    return new Response(env.GREETING + request.url);
  },
});
