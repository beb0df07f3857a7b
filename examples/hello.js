// The smallest useful worker: a fetch handler that greets the person that the JSON body names.
//
//   pinwheel dev examples/hello.js
//   pinwheel send fetch dev/hello --data '{"name":"Ada"}'

export default {
  async fetch(request) {
    const text = await request.text();
    if (text === "") {
      return Response.json({ hello: "world" });
    }
    let body;
    try {
      body = JSON.parse(text);
    } catch {
      return Response.json({ error: "the body is not JSON" }, { status: 400 });
    }
    return Response.json({ hello: body?.name ?? "world" });
  },
};
