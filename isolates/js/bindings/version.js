// bindings/version.js is the binding of the version that runs: Cloudflare's version metadata.

"use strict";

const { JSONParse, ObjectFreeze } = primordials;

internal.bindingKinds.version = (_, json) => ObjectFreeze(JSONParse(json));
