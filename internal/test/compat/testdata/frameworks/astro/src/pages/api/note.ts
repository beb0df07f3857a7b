import type { APIRoute } from "astro";
import { env } from "cloudflare:workers";

export const PUT: APIRoute = async ({ request }) => {
  await env.NOTES.put("note", await request.text());
  return new Response("stored");
};

export const GET: APIRoute = async () => Response.json({ note: await env.NOTES.get("note") });
