import { createSchema, createYoga } from "graphql-yoga";

const yoga = createYoga<{ GREETING: string }>({
  schema: createSchema<{ GREETING: string }>({
    typeDefs: /* GraphQL */ `
      type Query { hello(name: String = "world"): String!, size(file: String): Int, secret: String }
      type Mutation { double(n: Int!): Int! }
      type Subscription { count(to: Int!): Int! }
    `,
    resolvers: {
      Query: {
        hello: (_root, { name }, context) => `${context.GREETING} ${name}`,
        secret: () => { throw new Error("a detail that is nobody's business"); },
      },
      Mutation: { double: (_root, { n }) => n * 2 },
      Subscription: {
        count: {
          subscribe: async function* (_root, { to }) {
            for (let i = 1; i <= to; i++) {
              yield { count: i };
              await new Promise((resolve) => setTimeout(resolve, 2));
            }
          },
        },
      },
    },
  }),
  logging: false,
});

export default { fetch: (request: Request, env: { GREETING: string }, ctx: object) => yoga.fetch(request, env, ctx) };
