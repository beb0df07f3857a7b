import { defineConfig } from "astro/config";
import cloudflare from "@astrojs/cloudflare";

// Without imageService the adapter wants a binding to Cloudflare's service for images, which the deploy refuses.
export default defineConfig({ output: "server", adapter: cloudflare({ imageService: "passthrough" }) });
