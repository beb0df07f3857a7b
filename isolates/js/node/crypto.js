// node/crypto.js is the module node:crypto, with what others import of it all the same.

"use strict";

const { Error } = primordials;
const { coded, hide, put } = internal.node;
const { module } = internal.node.cryptoParts;

// absent makes a function that says what to use instead.
const absent = (name, instead) => () => {
  throw coded(Error, "ERR_METHOD_NOT_IMPLEMENTED", `node:crypto has no ${name} in a worker: ${instead}`);
};

put(module, {
  getFips() { return 0; },
  setFips: absent("setFips", "there is no FIPS provider"),
  setEngine: absent("setEngine", "there are no engines"),
  secureHeapUsed() { return undefined; },
  get fips() { return false; },
});

// These names are not there: they say so when they are called. They are not listed among the names of the module.
const instead = {
  __proto__: null,
  Certificate: "SPKAC is not supported", X509Certificate: "createPublicKey() reads the key of a certificate",
  DiffieHellman: "use createECDH() or diffieHellman()", DiffieHellmanGroup: "use createECDH() or diffieHellman()",
  createDiffieHellman: "use createECDH() or diffieHellman()", createDiffieHellmanGroup: "use createECDH() or diffieHellman()",
  getDiffieHellman: "use createECDH() or diffieHellman()", checkPrime: "use an npm package in JavaScript",
  checkPrimeSync: "use an npm package in JavaScript", generatePrime: "use an npm package in JavaScript",
  generatePrimeSync: "use an npm package in JavaScript", privateEncrypt: "use sign()", publicDecrypt: "use verify()",
  createCipher: "use createCipheriv()", createDecipher: "use createDecipheriv()",
};
const names = primordials.ObjectKeys(instead);
for (let i = 0; i < names.length; i++) {
  const refuse = absent(names[i], instead[names[i]]);
  hide(module, names[i], function () { refuse(); });
}
internal.nodeModules.crypto = module;
