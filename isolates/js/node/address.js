// node/address.js tells IP addresses from names, for node:net and node:dns.

"use strict";

const {
  Number, RegExpPrototypeExec, StringPrototypeIndexOf, StringPrototypeSlice, StringPrototypeSplit,
} = primordials;

const decimal = /^(?:0|[1-9][0-9]{0,2})$/;
const group = /^[0-9A-Fa-f]{1,4}$/;
const zoned = /^([^%]*)%[0-9A-Za-z.\-]+$/;

function isIPv4(value) {
  const parts = StringPrototypeSplit(`${value}`, ".", 5);
  if (parts.length !== 4) return false;
  for (let i = 0; i < 4; i++) {
    if (RegExpPrototypeExec(decimal, parts[i]) === null || Number(parts[i]) > 255) return false;
  }
  return true;
}

// groups counts the groups of 16 bits in a part of an IPv6 address; -1 = it is malformed.
function groups(text, mayEndInIPv4) {
  if (text === "") return 0;
  const parts = StringPrototypeSplit(text, ":", 9);
  let n = 0;
  for (let i = 0; i < parts.length; i++) {
    if (RegExpPrototypeExec(group, parts[i]) !== null) n++;
    else if (mayEndInIPv4 && i === parts.length - 1 && isIPv4(parts[i])) n += 2;
    else return -1;
  }
  return n;
}

function isIPv6(value) {
  const zone = RegExpPrototypeExec(zoned, `${value}`);
  const text = zone === null ? `${value}` : zone[1];
  const at = StringPrototypeIndexOf(text, "::");
  if (at === -1) return groups(text, true) === 8;
  const before = groups(StringPrototypeSlice(text, 0, at), false);
  const after = groups(StringPrototypeSlice(text, at + 2), true);
  return before >= 0 && after >= 0 && before + after < 8;
}

function isIP(value) {
  if (isIPv4(value)) return 4;
  return isIPv6(value) ? 6 : 0;
}

// portOf returns the number of a port that a guest gives.
function portOf(value) {
  const port = typeof value === "string" && value !== "" ? primordials.Number(value) : value;
  if (typeof port !== "number") throw internal.node.wrongType("options.port", "of type number or string", value);
  if (!primordials.NumberIsInteger(port) || port < 0 || port > 65535) {
    throw internal.node.coded(
      primordials.RangeError, "ERR_SOCKET_BAD_PORT", `Port should be >= 0 and < 65536. Received ${internal.inspect(value)}.`,
    );
  }
  return port;
}

internal.nodeModules.address = { __proto__: null, isIP, isIPv4, isIPv6, portOf };
