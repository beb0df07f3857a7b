// @mode pinned
import { greet } from "./lib/greet";

interface Input { name?: string }

export default {
  async fetch(request: Request): Promise<Response> {
    const input: Input = await request.json();
    return Response.json({ hello: greet(input.name ?? "world") });
  },
};
