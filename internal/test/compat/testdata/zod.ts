import { z } from "zod";

const Address = z.object({ street: z.string().min(1), zip: z.string().regex(/^\d{4}$/, "four digits") });
const User = z.strictObject({
  name: z.string().trim().min(2),
  email: z.email(),
  age: z.coerce.number().int().positive().optional(),
  site: z.url().optional(),
  born: z.iso.date().transform((s) => new Date(s)).optional(),
  role: z.enum(["admin", "user"]).default("user"),
  address: Address.nullable().optional(),
  tags: z.set(z.string()).or(z.array(z.string()).transform((a) => new Set(a))).optional(),
  contact: z.discriminatedUnion("by", [
    z.object({ by: z.literal("mail"), to: z.email() }),
    z.object({ by: z.literal("phone"), number: z.e164() }),
  ]).optional(),
}).refine((u) => u.role !== "admin" || u.email.endsWith("@example.com"), { error: "admins are of example.com", path: ["email"] });

type User = z.infer<typeof User>;

export default {
  async fetch(request: Request): Promise<Response> {
    if (request.method === "GET") return Response.json(z.toJSONSchema(Address));
    const result = await User.safeParseAsync(await request.json());
    if (!result.success) {
      const issues = result.error.issues.map((i) => `${i.path.join(".")}: ${i.message}`);
      return Response.json({ issues, pretty: z.prettifyError(result.error) }, { status: 422 });
    }
    const user: User = result.data;
    return Response.json({ ...user, tags: [...(user.tags ?? [])] });
  },
};
