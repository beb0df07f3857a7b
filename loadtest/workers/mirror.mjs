// Gives the body back, whole.

export default {
  async fetch(request) {
    return new Response(await request.arrayBuffer());
  },
};
