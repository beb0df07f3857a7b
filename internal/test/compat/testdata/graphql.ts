import { GraphQLError, buildSchema, graphql, parse, validate, introspectionFromSchema, printSchema, subscribe, GraphQLObjectType, GraphQLSchema, GraphQLString, GraphQLInt } from "graphql";

const schema = buildSchema(`
  type Book { id: ID!, title: String!, author: Author }
  type Author { name: String!, books: [Book!]! }
  input BookInput { title: String!, author: String }
  type Query { book(id: ID!): Book, books(first: Int = 10): [Book!]!, broken: String }
  type Mutation { addBook(book: BookInput!): Book! }
`);

type Book = { id: string; title: string; authorName: string };

function library() {
  const books: Book[] = [{ id: "1", title: "Notes", authorName: "Ada" }, { id: "2", title: "Sketch", authorName: "Ada" }];
  const author = (name: string) => ({ name, books: async () => books.filter((b) => b.authorName === name).map(view) });
  const view = (b: Book) => ({ ...b, author: () => author(b.authorName) });
  return {
    book: async ({ id }: { id: string }) => { const b = books.find((x) => x.id === id); return b && view(b); },
    books: ({ first }: { first: number }) => books.slice(0, first).map(view),
    broken: () => { throw new GraphQLError("broken on purpose", { extensions: { code: "BROKEN" } }); },
    addBook: ({ book }: { book: { title: string; author?: string } }) => {
      books.push({ id: String(books.length + 1), title: book.title, authorName: book.author ?? "unknown" });
      return view(books[books.length - 1]);
    },
  };
}

// A subscription is an async iterator; here its first events are collected.
async function counted() {
  const live = new GraphQLSchema({
    query: new GraphQLObjectType({ name: "Query", fields: { x: { type: GraphQLString } } }),
    subscription: new GraphQLObjectType({ name: "Subscription", fields: { count: { type: GraphQLInt, subscribe: async function* () { for (let count = 0; count < 3; count++) yield { count }; } } } }),
  });
  const out = [];
  for await (const r of (await subscribe({ schema: live, document: parse("subscription { count }") })) as AsyncIterable<{ data: { count: number } }>) out.push(r.data.count);
  return out;
}

export default {
  async fetch(request: Request): Promise<Response> {
    const path = new URL(request.url).pathname;
    if (path === "/schema") return new Response(printSchema(schema));
    if (path === "/types") return Response.json(introspectionFromSchema(schema).__schema.types.length);
    if (path === "/count") return Response.json(await counted());
    const { query, variables, operationName } = await request.json();
    if (path === "/validate") return Response.json(validate(schema, parse(query)).map((e) => e.message));
    const result = await graphql({ schema, source: query, rootValue: library(), variableValues: variables, operationName });
    return Response.json(result, { status: result.data === undefined ? 400 : 200 });
  },
};
