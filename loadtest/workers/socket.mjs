// Sends each message of a WebSocket back.

export default {
  fetch(request) {
    if (request.headers.get("upgrade") !== "websocket") return new Response("ready");
    const [client, server] = Object.values(new WebSocketPair());
    server.accept();
    server.addEventListener("message", ({ data }) => server.send(data));
    return new Response(null, { status: 101, webSocket: client });
  },
};
