// Gives the body back as it comes.

export default {
  fetch(request) {
    return new Response(request.body);
  },
};
