// Packages that answer requests and make queries.
import { initTRPC, TRPCError } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { and, eq, gt, sql } from "drizzle-orm";
import { integer, pgTable, QueryBuilder, text } from "drizzle-orm/pg-core";
import { DummyDriver, Kysely, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler } from "kysely";
import { Elysia, t } from "elysia";
import { CloudflareAdapter } from "elysia/adapter/cloudflare-worker";
import { Hono } from "hono";
import { z } from "zod";
import { AutoRouter, json } from "itty-router";
import { buildSchema, graphql } from "graphql";
import { createSchema, createYoga } from "graphql-yoga";
import { worker } from "./answers.mjs";

const post = (url, body) => new Request(url, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } });
const said = async (response) => [response.status, response.headers.get("content-type"), await response.text()];

export const cases = {
  async "@trpc/server"() {
    const trpc = initTRPC.create();
    const router = trpc.router({
      double: trpc.procedure.input(z.number()).query(({ input }) => input * 2),
      fail: trpc.procedure.mutation(() => { throw new TRPCError({ code: "FORBIDDEN", message: "no" }); }),
    });
    const ask = async (req) => said(await fetchRequestHandler({ endpoint: "/trpc", req, router, createContext: () => ({}) }));
    const failed = await ask(post("http://x.test/trpc/fail", {}));
    return [await ask(new Request("http://x.test/trpc/double?input=21")), failed[0], await router.createCaller({}).double(4)];
  },
  "drizzle-orm"() {
    const users = pgTable("users", { id: integer().primaryKey(), name: text().notNull() });
    return new QueryBuilder().select({ n: sql`count(*)`, name: users.name }).from(users).where(and(eq(users.name, "Ada"), gt(users.id, 3))).groupBy(users.name).toSQL();
  },
  kysely() {
    const db = new Kysely({ dialect: { createAdapter: () => new PostgresAdapter(), createDriver: () => new DummyDriver(), createIntrospector: (d) => new PostgresIntrospector(d), createQueryCompiler: () => new PostgresQueryCompiler() } });
    const { sql: query, parameters } = db.selectFrom("users as u").innerJoin("posts", "posts.by", "u.id").select(["u.name"]).where("u.id", ">", 3).orderBy("u.name", "desc").limit(2).compile();
    return [query, parameters];
  },
  async elysia() {
    const app = new Elysia({ adapter: CloudflareAdapter, aot: false }).get("/hi/:name", ({ params }) => `hi ${params.name}`).post("/sum", ({ body }) => ({ sum: body.a + body.b }), { body: t.Object({ a: t.Number(), b: t.Number() }) });
    return [await said(await app.handle(new Request("http://x.test/hi/Ada"))), await said(await app.handle(post("http://x.test/sum", { a: 1, b: 2 }))), (await app.handle(post("http://x.test/sum", { a: "x" }))).status];
  },
  async hono() {
    const app = new Hono().basePath("/api").get("/hi/:name", (c) => c.json({ hi: c.req.param("name") })).notFound((c) => c.text("none", 404));
    return [await said(await app.request("/api/hi/Ada")), await said(await app.request("/other"))];
  },
  async "itty-router"() {
    const router = AutoRouter({ base: "/api" }).get("/hi/:name", ({ name }) => ({ hi: name })).all("*", () => json({ none: true }, { status: 404 }));
    return [await said(await router.fetch(new Request("http://x.test/api/hi/Ada"))), await said(await router.fetch(new Request("http://x.test/api/no")))];
  },
  graphql: () => graphql({ schema: buildSchema("type Query { hi(name: String!): String, fail: Int! }"), rootValue: { hi: ({ name }) => `hi ${name}`, fail: () => { throw new Error("broken"); } }, source: '{ hi(name: "Ada") a: hi(name: "Bo") }' }),
  async "graphql-yoga"() {
    const yoga = createYoga({ logging: false, schema: createSchema({ typeDefs: "type Query { hi(name: String): String! }", resolvers: { Query: { hi: (_, { name }) => `hi ${name}` } } }) });
    return said(await yoga.fetch("http://x.test/graphql", post("http://x.test/graphql", { query: '{ hi(name: "Ada") }' })));
  },
};

export default worker(cases);
