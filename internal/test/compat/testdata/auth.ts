// A package with files for workerd that presume Node. Classes have the names that their authors gave them.
import { betterAuth } from "better-auth";

const auth = betterAuth({
  baseURL: "https://app.example",
  secret: "a secret of thirty-two characters and more",
  emailAndPassword: { enabled: true },
});

class PaymentError extends Error {
  static status = 402;
  static of(text: string) {
    return new PaymentError(text);
  }
}

class Own {
  static name = "its own";
  static again = () => Own;
}

export default {
  async fetch(request: Request) {
    const { pathname } = new URL(request.url);
    if (pathname.startsWith("/api/auth/")) return auth.handler(request);
    const err = PaymentError.of("too little");
    const stack = err.stack!.split("\n")[1]!.trim().split(" ").slice(0, 2).join(" ");
    return Response.json([err.constructor.name, PaymentError.name, Own.name, Object.keys(PaymentError), stack]);
  },
};
