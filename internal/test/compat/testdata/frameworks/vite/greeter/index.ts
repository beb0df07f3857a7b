import { WorkerEntrypoint } from "cloudflare:workers";

export class Greeter extends WorkerEntrypoint {
  greet(name: string) {
    return `${this.env.GREETING}, ${name}`;
  }
}

export default { fetch: (request: Request) => new Response("greeter has " + new URL(request.url).pathname) };
