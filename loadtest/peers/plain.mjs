// The handler as a function of parsed JSON.

import handler from "../workers/order.mjs";

const decoder = new TextDecoder();

export const answer = (owner, data) => JSON.stringify(handler.task({ payload: JSON.parse(decoder.decode(data)) }));
