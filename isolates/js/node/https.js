// node/https.js is node:https. fetch() verifies certificates.

"use strict";

const { builtin, put } = internal.node;
const { createServer } = builtin("http");
const { Agent: HTTPAgent, ClientRequest, PublicServer } = internal.node.http;

class Agent extends HTTPAgent {
  defaultPort = 443;
  protocol = "https:";
}

const globalAgent = new Agent({ keepAlive: true, scheduling: "lifo", timeout: 5000 });
const { Proxy, ReflectConstruct } = primordials;
const PublicAgent = new Proxy(Agent, { __proto__: null, apply: (_, self, args) => ReflectConstruct(Agent, args) });
internal.node.hide(Agent.prototype, "constructor", PublicAgent);

function request(url, options, callback) { return new ClientRequest(url, options, callback, globalAgent); }

internal.nodeModules.https = put({}, {
  Agent: PublicAgent, globalAgent, Server: PublicServer, createServer,
  get(url, options, callback) {
    const req = request(url, options, callback);
    req.end();
    return req;
  },
  request,
});
