// Answers with the body of the request, which it does not read. The peers of loadtest http run this very file.

export default {
  fetch: (request) => new Response(request.body),
};
