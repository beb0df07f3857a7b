// Packages that check and describe data.
import { z } from "zod";
import * as v from "valibot";
import * as yup from "yup";
import * as s from "superstruct";
import { type } from "arktype";
import Ajv from "ajv";
import addFormats from "ajv-formats";
import { err, ok, ResultAsync } from "neverthrow";
import { worker } from "./answers.mjs";

export const cases = {
  zod() {
    const user = z.object({ name: z.string().trim().min(2), age: z.coerce.number().int(), tags: z.array(z.enum(["a", "b"])).default(["a"]) });
    const bad = user.safeParse({ name: "x", age: "no", tags: ["c"] });
    return [user.parse({ name: " Ada ", age: "36" }), bad.error.issues.map((i) => [i.path, i.code, i.message]), z.toJSONSchema(user)];
  },
  valibot() {
    const user = v.object({ name: v.pipe(v.string(), v.trim(), v.minLength(2)), mail: v.pipe(v.string(), v.email()), born: v.optional(v.date()) });
    const bad = v.safeParse(user, { name: "x", mail: "nobody" });
    return [v.parse(user, { name: " Ada ", mail: "a@b.example", born: new Date(0) }), v.flatten(bad.issues)];
  },
  async yup() {
    const user = yup.object({ name: yup.string().required().min(2), age: yup.number().positive().integer(), site: yup.string().url() });
    const bad = await user.validate({ name: "x", age: -1.5, site: "no" }, { abortEarly: false }).catch((e) => [e.name, e.errors]);
    return [await user.validate({ name: "Ada", age: "36" }), bad];
  },
  superstruct() {
    const user = s.object({ name: s.size(s.string(), 2, 5), age: s.defaulted(s.number(), 7) });
    const [error] = s.validate({ name: "x" }, user);
    return [s.create({ name: "Ada" }, user), error.message, error.failures().map((f) => f.path)];
  },
  arktype() {
    const user = type({ name: "string > 1", "age?": "number.integer >= 0", kind: "'a' | 'b'" });
    const bad = user({ name: "x", age: 1.5, kind: "c" });
    return [user({ name: "Ada", kind: "a" }), bad instanceof type.errors, bad.summary];
  },
  ajv() {
    const ajv = new Ajv({ allErrors: true });
    addFormats(ajv);
    const check = ajv.compile({ type: "object", properties: { mail: { type: "string", format: "email" } }, required: ["name"] });
    return [check({ name: "Ada" }), check({ mail: "x" }), check.errors];
  },
  async neverthrow() {
    const half = (n) => (n % 2 ? err(`${n} is odd`) : ok(n / 2));
    const later = await ResultAsync.fromPromise(Promise.reject(new Error("late")), (e) => e.message);
    return [half(8).andThen(half).unwrapOr(0), half(6).andThen(half).match(String, (e) => e), later.isErr() && later.error];
  },
};

export default worker(cases);
