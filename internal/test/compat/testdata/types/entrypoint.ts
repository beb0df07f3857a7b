// What must type-check of cloudflare:workers.
import { env, RpcTarget, waitUntil, WorkerEntrypoint } from "cloudflare:workers";

declare global {
  namespace Cloudflare {
    interface Env {
      KEY: string;
    }
  }
}

const key: string = env.KEY;

export class Counter extends RpcTarget {
  n = 0;
}

export class Named extends WorkerEntrypoint {
  hello(): string {
    return key + this.env.KEY;
  }
}

export default class extends WorkerEntrypoint<{ OTHER: number }, { user?: string }> {
  override async fetch(request: Request) {
    waitUntil(Promise.resolve());
    this.ctx.waitUntil(request.text());
    const user: string | undefined = this.ctx.props.user;
    return new Response(`${user}${this.env.OTHER.toFixed(2)}`);
  }
  override task(event: TaskEvent<{ n: number }>) {
    return event.payload.n;
  }
}
