// A worker whose handler otel-cf-workers wraps. It sends its spans to the collector that env names.
import { instrument } from "@microlabs/otel-cf-workers";
import { trace } from "@opentelemetry/api";

const handler = {
  async fetch(request) {
    const span = trace.getActiveSpan();
    span.setAttribute("greeting", "hi");
    return Response.json([new URL(request.url).pathname, span.spanContext().traceId.length]);
  },
};

export default instrument(handler, (env) => ({ exporter: { url: env.COLLECTOR }, service: { name: "greeter" } }));
