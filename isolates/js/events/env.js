// events/env.js builds env, the frozen object of a worker's bindings: variables as strings or values of JSON, secrets as
// strings, and what bindings/ makes of the others.

"use strict";

const { JSONParse, ObjectDefineProperty, ObjectFreeze } = primordials;

let env = ObjectFreeze({});
let jsonVars = [];
internal.env = () => env;
internal.jsonVars = () => jsonVars;

// buildEnv makes env from flat lists: name, value of texts and json; kind, name, value of bindings. texts are variables
// and secrets. The values of json are JSON texts. What they make is not frozen, as at Cloudflare.
internal.buildEnv = (texts, json, bindings) => {
  const object = {};
  jsonVars = json;
  for (let i = 0; i + 1 < texts.length; i += 2) define(object, texts[i], texts[i + 1]);
  for (let i = 0; i + 1 < json.length; i += 2) define(object, json[i], JSONParse(json[i + 1]));
  for (let i = 0; i + 2 < bindings.length; i += 3) {
    const name = bindings[i + 1];
    define(object, name, internal.bindingKind(bindings[i])(name, bindings[i + 2]));
  }
  env = ObjectFreeze(object);
};

function define(object, name, value) {
  ObjectDefineProperty(object, name, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
}
