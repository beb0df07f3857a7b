// Calls an upstream with ky and with ofetch: retries, hooks, timeouts, errors, JSON, searchParams, streams.
import ky, { HTTPError, TimeoutError } from "ky";
import { FetchError, ofetch } from "ofetch";

async function withKy(base: string) {
  const seen: string[] = [];
  const api = ky.create({
    prefixUrl: base, retry: { limit: 2, delay: () => 5 }, headers: { "x-client": "ky" },
    hooks: {
      beforeRequest: [(request) => { request.headers.set("x-hook", "1"); }],
      beforeRetry: [({ retryCount }) => { seen.push(`retry ${retryCount}`); }],
      afterResponse: [(_request, _options, response) => { seen.push(String(response.status)); }],
    },
  });
  const echo = await api.post("echo", { json: { a: 1 }, searchParams: { q: "ä b" } }).json<unknown>();
  const flaky = await api.get("flaky/ky").text();
  const form = new FormData();
  form.set("f", new File(["data"], "f.txt", { type: "text/plain" }));
  const sent = await api.post("echo", { body: form }).json<{ type: string }>();
  const missing = await api.get("missing").then(() => null, (e: HTTPError) => e instanceof HTTPError && `${e.name} ${e.response.status}`);
  const slow = await api.get("slow", { timeout: 30, retry: 0 }).then(() => null, (e) => e instanceof TimeoutError && e.name);
  const aborted = new AbortController();
  const gone = api.get("slow", { signal: aborted.signal, retry: 0 }).then(() => null, (e) => e.name);
  aborted.abort();
  return { echo, flaky, form: sent.type.split(";")[0], missing, slow, gone: await gone, seen };
}

async function withOfetch(base: string) {
  const seen: string[] = [];
  const api = ofetch.create({ baseURL: base, headers: { "x-client": "ofetch" }, onResponse: ({ response }) => { seen.push(String(response.status)); } });
  const echo = await api("/echo", { method: "PUT", body: { b: [2] }, query: { q: ["x", "y"] } });
  const flaky = await api("/flaky/ofetch", { retry: 3, retryDelay: 5 });
  const missing = await api("/missing").then(() => null, (e: FetchError) => e instanceof FetchError && { status: e.status, data: e.data, text: e.statusText });
  const blob = await api("/bytes", { responseType: "blob" });
  const stream: ReadableStream<Uint8Array> = await api("/bytes", { responseType: "stream" });
  let length = 0;
  for await (const chunk of stream) length += chunk.length;
  const slow = await api("/slow", { timeout: 30, retry: 0 }).then(() => null, (e) => e.name);
  return { echo, flaky, missing, blob: blob.size, stream: length, slow, seen };
}

export default {
  async task(event: { payload: { base: string } }) {
    const { base } = event.payload;
    return { ky: await withKy(base), ofetch: await withOfetch(base) };
  },
};
