import { readFileSync } from "node:fs";
import path from "path";
import { missing } from "./lib/greet";
import nowhere from "./nowhere";
import remote from "https://example.com/mod.js";
import left from "left-pad";

export default { fetch: () => new Response(String([readFileSync, path, missing, nowhere, remote, left])) };
