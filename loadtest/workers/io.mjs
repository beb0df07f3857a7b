// Asks a slow server, and passes on what it says.

export default {
  async fetch(request, env) {
    const order = await request.json();
    const answer = await fetch(`${env.SLOW_URL}/?id=${order.id}`);
    return new Response(await answer.text());
  },
};
