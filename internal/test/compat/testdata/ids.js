import { customAlphabet, nanoid, urlAlphabet } from "nanoid";
import * as uuid from "uuid";

export default {
  async task() {
    const ids = Array.from({ length: 2000 }, () => nanoid());
    const hex = customAlphabet("0123456789abcdef", 12);
    const v7 = Array.from({ length: 50 }, () => uuid.v7());
    return {
      nanoid: { distinct: new Set(ids).size, shape: ids.every((id) => id.length === 21 && [...id].every((c) => urlAlphabet.includes(c))), short: nanoid(5).length, hex: hex() },
      uuid: {
        v1: uuid.version(uuid.v1()), v4: uuid.version(uuid.v4()), v6: uuid.version(uuid.v6()), distinct: new Set(Array.from({ length: 500 }, () => uuid.v4())).size,
        v3: uuid.v3("hello.example.com", uuid.v3.DNS), v5: uuid.v5("hello.example.com", uuid.v5.DNS),
        sorted: v7.join() === [...v7].sort().join(), valid: uuid.validate(v7[0]), invalid: uuid.validate("6ec0bd7f-11c0-43da-975e"),
        parsed: [...uuid.parse("6ec0bd7f-11c0-43da-975e-2a8ad9ebae0b")], text: uuid.stringify(new Uint8Array(16).fill(255)),
      },
    };
  },
};
