// What a Pinwheel worker has beside the web platform, for editors and for tsc.
//
//   pinwheel types > pinwheel.d.ts
//
// and in tsconfig.json (or jsconfig.json): "lib": ["ESNext", "WebWorker"], "types": [], with pinwheel.d.ts among the files.
// Not there, though lib.webworker.d.ts has them: SharedArrayBuffer, Atomics, WebAssembly, importScripts, postMessage,
// indexedDB and what else docs/guides/types.md says.

// ---- handlers ----

/**
 * What a worker exports as default: `export default { fetch(request, env, ctx) {…} } satisfies Handler<Env>`.
 * `Env` are the worker's variables (strings) and queues; `Payload` is what the bodies of its tasks hold.
 */
interface Handler<Env = unknown, Payload = any> {
  /** Answers an HTTP request. What it throws is a failed event: 500, after the retries that the worker has. */
  fetch?: (request: Request, env: Env, ctx: ExecutionContext) => Response | Promise<Response>;
  /** What answers at which path. `fetch` gets the other requests. */
  routes?: { [path: string]: Answer<Env> | { [method: string]: Answer<Env> } };
  /** Does a task. What it returns is the result, as JSON; a result with a member `success` says itself how it went. */
  task?: (event: TaskEvent<Payload>, env: Env, ctx: ExecutionContext) => unknown;
  /**
   * Takes the tasks in batches, in place of `task`. What it does not decide about is handled when it returns, and runs again
   * when it throws or a promise of waitUntil rejects.
   */
  queue?: (batch: MessageBatch<Payload>, env: Env, ctx: ExecutionContext) => void | BatchFailures | Promise<void | BatchFailures>;
  /** Runs at a time. What it returns is the result, as JSON. */
  scheduled?: (event: ScheduledEvent, env: Env, ctx: ExecutionContext) => unknown;
  /** Mode persistent only: no event has come for `lifetime.idleMs`. It may take 2 s. */
  onIdle?: (env: Env) => unknown;
  /** Mode persistent only: the context is about to go. It may take 2 s. */
  onTerminate?: (env: Env) => unknown;
}

/** What answers the requests of a route. A Response or Blob answers each of them. */
type Answer<Env = unknown> =
  | Response
  | Blob
  | ((request: RouteRequest, env: Env, ctx: ExecutionContext) => Response | Promise<Response>);

/** The request of a route. */
interface RouteRequest extends Request {
  /** The decoded segments of the path by the names that the route has for them: `id` for `:id`, `"*"` for `*`. */
  readonly params: { [name: string]: string };
}

/** The third argument of handlers. */
interface ExecutionContext<Props = unknown> {
  /** Keeps the event going until the promise has settled, after the reply. Throws once the event is over. */
  waitUntil(promise: unknown): void;
  /** Does nothing; it is here for handlers that were written for other runtimes. */
  passThroughOnException(): void;
  /** An empty object. */
  readonly props: Props;
  /** A Service for each entrypoint that the worker's own module exports. */
  readonly exports: { readonly [name: string]: Service };
}

/** Two ends of a WebSocket, in mode persistent only: one is accepted, the other one goes to the client with the Response. */
type WebSocketPair = { 0: WebSocket; 1: WebSocket; [Symbol.iterator](): IterableIterator<WebSocket> };
declare const WebSocketPair: { new (): WebSocketPair };

interface WebSocket {
  /** Takes an end of a WebSocketPair for the worker. What it sends waits until the client has the other end. */
  accept(): void;
  /** Names of Cloudflare's for CONNECTING, OPEN, CLOSING and CLOSED. */
  readonly READY_STATE_CONNECTING: 0;
  readonly READY_STATE_OPEN: 1;
  readonly READY_STATE_CLOSING: 2;
  readonly READY_STATE_CLOSED: 3;
}

interface ResponseInit {
  /** The client's end of a WebSocketPair; the status is 101. */
  webSocket?: WebSocket | null;
  /** An object that the response keeps. Nothing looks at it. */
  cf?: object;
}

interface Response {
  readonly webSocket: WebSocket | null;
  /** What its maker gave. */
  readonly cf: any;
}

/** What an event of a kind other than fetch carries. */
interface EventInfo<Payload = any> {
  /** The same for each attempt of an event. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
  /** How often the event was a dead letter and was replayed. */
  readonly replays: number;
  /** Headers of the NATS message. */
  readonly headers: Headers;
  /** The source that the event is a message of; null if it is none. */
  readonly source: MessageSource | null;
  /** The body: what its JSON says if it is JSON, else its bytes. Throws if it should be JSON and is not, which fails the event for good. */
  readonly payload: Payload;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<ReturnType<typeof Uint8Array.of>>; // Uint8Array<ArrayBuffer> since TypeScript 5.7, Uint8Array before
  /** Aborts when somebody cancels the event, a moment before the run is ended. */
  readonly signal: AbortSignal;
  /** If this attempt fails, it is the last one. */
  noRetry(): void;
  /** If this attempt fails, the next one comes after `delaySeconds`, or after the usual delay. */
  retry(options?: { delaySeconds?: number }): void;
}

/** Where a message of a source came from, as the fleet knows it. */
interface MessageSource {
  /** The stream; missing for a core subject. */
  readonly stream?: string;
  readonly subject: string;
  /** In the stream; the revision of a key. */
  readonly sequence?: number;
  /** When the source stored it. */
  readonly time: Date;
  /** Of a KV bucket. */
  readonly key?: string;
  /** What happened to the key or the object. */
  readonly operation?: "put" | "delete" | "purge";
}

/** The first argument of `task`. */
interface TaskEvent<Payload = any> extends EventInfo<Payload> {
  readonly type: "task";
}

/** The first argument of `scheduled`. */
interface ScheduledEvent<Payload = any> extends EventInfo<Payload> {
  readonly type: "scheduled";
  /** The time that the event stands for, in milliseconds since 1970; 0 if its publisher has given none. */
  readonly scheduledTime: number;
  /** The expression that the event stands for; "" if its publisher has given none. */
  readonly cron: string;
}

/** The first argument of `queue`: tasks of the worker. The first call that decides about a message holds. */
interface MessageBatch<Body = any> {
  /** Name of the worker. */
  readonly queue: string;
  readonly messages: readonly Message<Body>[];
  readonly metadata: { readonly metrics: { readonly oldestMessageTimestamp: Date } };
  /** Acks every message about which nothing is decided. */
  ackAll(): void;
  /** Asks for another run of every message about which nothing is decided. */
  retryAll(options?: { delaySeconds?: number }): void;
}

/** A task in a batch. */
interface Message<Body = any> {
  /** The same for each attempt. */
  readonly id: string;
  /** When it was stored. */
  readonly timestamp: Date;
  /** What was sent: a value of JSON, a string, or an ArrayBuffer for bytes. */
  readonly body: Body;
  /** Number of this run, from 1. */
  readonly attempts: number;
  /** Headers of the NATS message. */
  readonly headers: Headers;
  /** The source that the task is a message of; null if it is none. */
  readonly source: MessageSource | null;
  /** The message is handled, also if the handler throws later. */
  ack(): void;
  /** The message runs again after `delaySeconds`, or after the usual delay. */
  retry(options?: { delaySeconds?: number }): void;
}

/** What `queue` may return: the messages that failed, by their ids. The others are handled. */
interface BatchFailures {
  batchItemFailures?: readonly { itemIdentifier: string }[] | null;
}

/** What a worker may return from `task` or `scheduled` to say itself how it went. */
interface Result<Data = unknown> {
  success: boolean;
  data?: Data;
  error?: unknown;
}

// ---- env ----

/** A queue of the manifest: `env.NAME.send(…)` publishes a task to another worker of the same owner. */
interface Queue<Body = any> {
  /** Resolves when the task is stored. A string is sent as text, bytes as bytes, everything else as JSON, unless the options say otherwise. */
  send(body: Body, options?: QueueSendOptions): Promise<void>;
  /** Resolves when all of the tasks are stored: 1 to 100, with 256 KiB of bodies. Not atomic: an error says how many are stored. */
  sendBatch(messages: Iterable<QueueMessage<Body>>, options?: { delaySeconds?: number }): Promise<void>;
}

interface QueueMessage<Body = any> extends QueueSendOptions {
  body: Body;
}

interface QueueSendOptions {
  contentType?: "json" | "text" | "bytes";
  /** Run the task so many seconds from now, with fractions: 0 to 31622400, which is 366 days. Default: at once. */
  delaySeconds?: number;
  /** Headers of the NATS message: event.headers there. */
  headers?: HeadersInit;
}

/** A namespace of keys and values: the manifest's `kv`. docs/reference/bindings.md */
interface KVNamespace<Key extends string = string> {
  get(key: Key, options?: "text" | KVGetOptions<"text">): Promise<string | null>;
  get<Value = unknown>(key: Key, options: "json" | KVGetOptions<"json">): Promise<Value | null>;
  get(key: Key, options: "arrayBuffer" | KVGetOptions<"arrayBuffer">): Promise<ArrayBuffer | null>;
  get(key: Key, options: "stream" | KVGetOptions<"stream">): Promise<ReadableStream<Uint8Array> | null>;
  /** At most 100 keys. */
  get(keys: Key[], options?: "text" | KVGetOptions<"text">): Promise<Map<string, string | null>>;
  get<Value = unknown>(keys: Key[], options: "json" | KVGetOptions<"json">): Promise<Map<string, Value | null>>;
  getWithMetadata<Metadata = unknown>(key: Key, options?: "text" | KVGetOptions<"text">): Promise<KVResult<string, Metadata>>;
  getWithMetadata<Value = unknown, Metadata = unknown>(key: Key, options: "json" | KVGetOptions<"json">): Promise<KVResult<Value, Metadata>>;
  getWithMetadata<Metadata = unknown>(key: Key, options: "arrayBuffer" | KVGetOptions<"arrayBuffer">): Promise<KVResult<ArrayBuffer, Metadata>>;
  getWithMetadata<Metadata = unknown>(key: Key, options: "stream" | KVGetOptions<"stream">): Promise<KVResult<ReadableStream<Uint8Array>, Metadata>>;
  /** Resolves when the value is stored. */
  put(key: Key, value: string | ArrayBuffer | ArrayBufferView | ReadableStream, options?: KVPutOptions): Promise<void>;
  delete(key: Key): Promise<void>;
  list<Metadata = unknown>(options?: KVListOptions): Promise<KVList<Metadata, Key>>;
}

interface KVGetOptions<Type> {
  type?: Type;
  /** Accepted, without effect. */
  cacheTtl?: number;
}

interface KVResult<Value, Metadata> {
  value: Value | null;
  metadata: Metadata | null;
  cacheStatus: string | null;
}

interface KVPutOptions {
  /** Seconds since 1970. */
  expiration?: number;
  /** Seconds from now, at least 1. */
  expirationTtl?: number;
  /** At most 1024 bytes as JSON. */
  metadata?: any;
}

interface KVListOptions {
  prefix?: string | null;
  /** At most 1000. */
  limit?: number;
  cursor?: string | null;
}

type KVList<Metadata, Key extends string = string> = { keys: { name: Key; expiration?: number; metadata?: Metadata }[]; cacheStatus: string | null } & (
  | { list_complete: true }
  | { list_complete: false; cursor: string }
);

/** The files of the worker (`assets.binding` of the manifest). */
interface Fetcher {
  /** Answers with the file at the path of the URL, as a server of these files does. The host means nothing. */
  fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>;
}

/** A bucket of the manifest (`"objects"`): objects in the shape of R2. docs/reference/bindings.md says where it differs. */
interface R2Bucket {
  head(key: string): Promise<R2Object | null>;
  get(key: string, options?: { range?: R2Range | Headers }): Promise<R2ObjectBody | null>;
  /** Without a body if the condition is not met. */
  get(key: string, options: { onlyIf: R2Conditional | Headers; range?: R2Range | Headers }): Promise<R2ObjectBody | R2Object | null>;
  put(key: string, value: R2Value, options?: R2PutOptions): Promise<R2Object>;
  /** Null if the condition is not met. */
  put(key: string, value: R2Value, options: R2PutOptions & { onlyIf: R2Conditional | Headers }): Promise<R2Object | null>;
  /** Up to 1000 keys. */
  delete(keys: string | string[]): Promise<void>;
  list(options?: R2ListOptions): Promise<R2Objects>;
}

/** Up to 25 MiB. */
type R2Value = string | ArrayBuffer | ArrayBufferView | Blob | ReadableStream | null;

type R2Range = { offset?: number; length?: number } | { suffix: number };

interface R2Conditional {
  etagMatches?: string;
  etagDoesNotMatch?: string;
  uploadedBefore?: Date;
  uploadedAfter?: Date;
  secondsGranularity?: boolean;
}

interface R2HTTPMetadata {
  contentType?: string;
  contentLanguage?: string;
  contentDisposition?: string;
  contentEncoding?: string;
  cacheControl?: string;
  cacheExpiry?: Date;
}

/** One checksum at most: bytes, or hexadecimal. */
interface R2PutOptions {
  httpMetadata?: R2HTTPMetadata | Headers;
  customMetadata?: Record<string, string>;
  md5?: ArrayBuffer | ArrayBufferView | string;
  sha1?: ArrayBuffer | ArrayBufferView | string;
  sha256?: ArrayBuffer | ArrayBufferView | string;
  sha384?: ArrayBuffer | ArrayBufferView | string;
  sha512?: ArrayBuffer | ArrayBufferView | string;
}

interface R2Checksums {
  readonly md5?: ArrayBuffer;
  readonly sha1?: ArrayBuffer;
  readonly sha256?: ArrayBuffer;
  readonly sha384?: ArrayBuffer;
  readonly sha512?: ArrayBuffer;
  toJSON(): Record<string, string | undefined>;
}

interface R2Object {
  readonly key: string;
  readonly version: string;
  readonly size: number;
  readonly etag: string;
  readonly httpEtag: string;
  readonly uploaded: Date;
  readonly checksums: R2Checksums;
  readonly httpMetadata: R2HTTPMetadata;
  readonly customMetadata: Record<string, string>;
  readonly range?: { offset: number; length: number };
  readonly storageClass: string;
  writeHttpMetadata(headers: Headers): void;
}

interface R2ObjectBody extends R2Object {
  readonly body: ReadableStream<Uint8Array>;
  readonly bodyUsed: boolean;
  text(): Promise<string>;
  json<T = any>(): Promise<T>;
  arrayBuffer(): Promise<ArrayBuffer>;
  bytes(): Promise<Uint8Array>;
  blob(): Promise<Blob>;
}

interface R2ListOptions {
  prefix?: string;
  delimiter?: string;
  /** 1 to 1000. */
  limit?: number;
  cursor?: string;
  startAfter?: string;
  include?: ("httpMetadata" | "customMetadata")[];
}

interface R2Objects {
  objects: R2Object[];
  delimitedPrefixes: string[];
  truncated: boolean;
  cursor?: string;
}

/** Of the manifest's `version`: the version that runs. */
interface WorkerVersionMetadata {
  readonly id: string;
  readonly tag: string;
  /** When it was deployed: an ISO date. */
  readonly timestamp: string;
}

/** A NATS binding of the manifest. The subjects must be allowed by the manifest and by the owner's policy. */
interface NATS {
  /** Resolves when the message is handed to the connection; with jetStream, when a stream has stored it. */
  publish(subject: string, body?: unknown, options?: { headers?: HeadersInit; jetStream?: false }): Promise<void>;
  publish(subject: string, body: unknown, options: { headers?: HeadersInit; jetStream: boolean }): Promise<{ stream: string; seq: number }>;
  /** Resolves with the first reply, within timeoutMs (5000). */
  request(subject: string, body?: unknown, options?: { headers?: HeadersInit; timeoutMs?: number }): Promise<NATSReply>;
}

interface NATSReply {
  readonly headers: Headers;
  text(): string;
  json(): any;
  bytes(): ReturnType<typeof Uint8Array.of>;
}

// ---- globals ----

interface CacheStorage {
  readonly default: Cache;
}

interface RequestInit {
  /** Must be "half" when the body is a stream. */
  duplex?: "half";
  /** An object that the request keeps. `fetch` does not look at it. */
  cf?: object;
}

// What the library lacks of the web platform; docs/reference/web-apis.md lists all there is.

interface Request {
  /** An empty object if the request came in, otherwise what its maker gave. */
  readonly cf: any;
  readonly duplex: "half";
  readonly isReloadNavigation: boolean;
  readonly isHistoryNavigation: boolean;
}

interface MessagePort {
  /** The other port was closed. */
  onclose: ((this: MessagePort, ev: Event) => any) | null;
}

interface SubtleCrypto {
  /** Whether two buffers of the same length hold the same bytes, in a time that does not tell where they differ. */
  timingSafeEqual(a: BufferSource, b: BufferSource): boolean;
}

interface Crypto {
  /** A stream that hashes what is written: MD5, SHA-1, SHA-256, SHA-384 or SHA-512. A string is hashed as UTF-8. */
  readonly DigestStream: { new (algorithm: AlgorithmIdentifier): DigestStream };
}

interface DigestStream extends WritableStream<string | BufferSource> {
  /** Resolves when the stream is closed. */
  readonly digest: Promise<ArrayBuffer>;
  readonly bytesWritten: bigint;
}

/** Passes bytes from its writable side to its readable side. A write waits until a read takes its bytes. */
declare class IdentityTransformStream extends TransformStream<BufferSource, Uint8Array> {
  constructor(strategy?: { highWaterMark?: number });
}

/** The same for exactly so many bytes. A body with its readable side has a Content-Length. */
declare class FixedLengthStream extends IdentityTransformStream {
  constructor(expectedLength: number | bigint, strategy?: { highWaterMark?: number });
}

/** What the handlers of an HTMLRewriter get. A token ends when its handler has returned or its promise is settled. */
declare namespace HTMLRewriterTypes {
  interface ContentOptions {
    /** The content is HTML, and goes into the page as it is. Otherwise it is text. */
    html?: boolean;
  }

  interface Token {
    before(content: string, options?: ContentOptions): this;
    after(content: string, options?: ContentOptions): this;
    remove(): this;
  }

  interface ReplaceableToken extends Token {
    readonly removed: boolean;
    replace(content: string, options?: ContentOptions): this;
  }

  interface Element extends ReplaceableToken {
    tagName: string;
    readonly attributes: IterableIterator<[name: string, value: string]>;
    readonly namespaceURI: string;
    getAttribute(name: string): string | null;
    hasAttribute(name: string): boolean;
    setAttribute(name: string, value: string): this;
    removeAttribute(name: string): this;
    prepend(content: string, options?: ContentOptions): this;
    append(content: string, options?: ContentOptions): this;
    setInnerContent(content: string, options?: ContentOptions): this;
    removeAndKeepContent(): this;
    /** Only the last handler of an element is called. It throws if the element has no end tag. */
    onEndTag(handler: (tag: EndTag) => void | Promise<void>): void;
  }

  interface EndTag extends Token {
    name: string;
  }

  interface Text extends ReplaceableToken {
    readonly text: string;
    readonly lastInTextNode: boolean;
  }

  interface Comment extends ReplaceableToken {
    text: string;
  }

  interface Doctype {
    readonly name: string | null;
    readonly publicId: string | null;
    readonly systemId: string | null;
  }

  interface DocumentEnd {
    append(content: string, options?: ContentOptions): this;
  }

  interface ElementHandlers {
    element?(element: Element): void | Promise<void>;
    comments?(comment: Comment): void | Promise<void>;
    text?(chunk: Text): void | Promise<void>;
  }

  interface DocumentHandlers {
    doctype?(doctype: Doctype): void | Promise<void>;
    comments?(comment: Comment): void | Promise<void>;
    text?(chunk: Text): void | Promise<void>;
    end?(end: DocumentEnd): void | Promise<void>;
  }
}

/** Changes pages while they pass, as Cloudflare's does. */
declare class HTMLRewriter {
  on(selector: string, handlers: HTMLRewriterTypes.ElementHandlers): this;
  onDocument(handlers: HTMLRewriterTypes.DocumentHandlers): this;
  transform(response: Response): Response;
}

/** What setImmediate() returns. */
interface Immediate {
  ref(): this;
  unref(): this;
  hasRef(): boolean;
}

/** Calls back after what is queued, as setTimeout() with 0 does. */
declare function setImmediate<Args extends any[]>(callback: (...args: Args) => void, ...args: Args): Immediate;
declare function clearImmediate(immediate?: Immediate | null): void;

interface Scheduler {
  /** Resolves after so many milliseconds, or rejects when the signal aborts. */
  wait(delay: number, options?: { signal?: AbortSignal }): Promise<void>;
}

interface Navigator {
  readonly userAgent: string;
  readonly language: string;
  readonly languages: ReadonlyArray<string>;
  readonly hardwareConcurrency: number;
}

declare var Navigator: {
  prototype: Navigator;
  new (): Navigator;
};

/** What getRandomValues() throws for more than 65536 bytes. */
interface QuotaExceededError extends DOMException {
  readonly quota: number | null;
  readonly requested: number | null;
}

interface QuotaExceededErrorOptions {
  quota?: number;
  requested?: number;
}

declare var QuotaExceededError: {
  prototype: QuotaExceededError;
  new (message?: string, options?: QuotaExceededErrorOptions): QuotaExceededError;
};

/** Declare its members where you use it: `interface Shared { users?: Map<string, User> }`. */
interface Shared {
  [name: string]: any;
}

/** An object of the worker's own. In mode persistent it lives as long as the context, otherwise as long as the event. */
declare var shared: Shared;

/** Values that follow the code that set them through promises and timers, as in node:async_hooks. */
declare class AsyncLocalStorage<T> {
  constructor(options?: { defaultValue?: T; name?: string });
  static bind<F extends (...args: any[]) => any>(fn: F): F;
  static snapshot(): <R, A extends any[]>(fn: (...args: A) => R, ...args: A) => R;
  readonly name: string;
  getStore(): T | undefined;
  run<R, A extends any[]>(store: T, callback: (...args: A) => R, ...args: A): R;
  exit<R, A extends any[]>(callback: (...args: A) => R, ...args: A): R;
  enterWith(store: T): void;
  disable(): void;
}

/** As much of the TC39 proposal as there is: Variable and Snapshot. */
declare namespace AsyncContext {
  class Variable<T> {
    constructor(options?: { defaultValue?: T; name?: string });
    readonly name: string;
    get(): T | undefined;
    run<R, A extends any[]>(value: T, fn: (...args: A) => R, ...args: A): R;
  }
  class Snapshot {
    constructor();
    static wrap<F extends (...args: any[]) => any>(fn: F): F;
    run<R, A extends any[]>(fn: (...args: A) => R, ...args: A): R;
  }
}

// ---- addEventListener("fetch" | "task" | "scheduled") ----

interface ExtendableEvent extends Event {
  waitUntil(promise: unknown): void;
  passThroughOnException(): void;
  /** Answers: with a Response for a fetch, with the result for other events. */
  respondWith(response: unknown): void;
}

interface FetchEvent extends ExtendableEvent {
  readonly request: Request;
}

interface TaskListenerEvent<Payload = any> extends ExtendableEvent, EventInfo<Payload> {
  readonly type: "task";
}

interface ScheduledListenerEvent<Payload = any> extends ExtendableEvent, EventInfo<Payload> {
  readonly type: "scheduled";
  readonly scheduledTime: number;
  readonly cron: string;
}

declare function addEventListener(type: "fetch", listener: (event: FetchEvent) => unknown): void;
declare function addEventListener(type: "task", listener: (event: TaskListenerEvent) => unknown): void;
declare function addEventListener(type: "scheduled", listener: (event: ScheduledListenerEvent) => unknown): void;

// ---- what a bundle may import beside modules and npm packages ----

/**
 * A service binding: a worker of the same owner. T is the class of its entrypoint. Arguments and results are cloned.
 * What the worker throws has remote: true.
 */
type Service<T = Record<string, (...args: any[]) => any>> = {
  fetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response>;
} & {
  [K in Exclude<keyof T, "fetch" | "ctx" | "env" | "then">]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never;
};

/** Declare in it what env has, for cloudflare:workers: `declare namespace Cloudflare { interface Env { KEY: string } }`. */
declare namespace Cloudflare {
  interface Env {}
}

declare module "cloudflare:workers" {
  /** The env that handlers get, also at the top level of a module. */
  export const env: Cloudflare.Env;
  /** Keeps the running event going until the promise has settled. Throws where no event runs. */
  export function waitUntil(promise: unknown): void;
  /** A default export that extends it answers each event with an instance of its own. */
  export abstract class WorkerEntrypoint<Env = Cloudflare.Env, Props = unknown> {
    constructor(ctx: ExecutionContext<Props>, env: Env);
    protected ctx: ExecutionContext<Props>;
    protected env: Env;
    fetch?(request: Request): Response | Promise<Response>;
    task?(event: TaskEvent): unknown;
    scheduled?(event: ScheduledEvent): unknown;
  }
  export abstract class RpcTarget {}
  /** ctx.exports, also at the top level: it is empty until the module is evaluated. */
  export const exports: { readonly [name: string]: Service };
}

declare module "cloudflare:node" {
  /** A fetch handler whose requests a server of node:http answers: the one that listens to the port, or the given one. */
  export function httpServerHandler(server: { port: number } | object): { fetch(request: Request): Promise<Response> };
  export function handleAsNodeRequest(server: number | { port: number } | object, request: Request): Promise<Response>;
}

declare module "cloudflare:sockets" {
  export interface SocketAddress { hostname: string; port: number }
  export interface SocketOptions { secureTransport?: "off" | "on" | "starttls"; allowHalfOpen?: boolean; highWaterMark?: number | bigint }
  export interface SocketInfo { remoteAddress?: string; localAddress?: string }
  /** A TCP connection. It belongs to the event that opened it, and ends with it. */
  export interface Socket {
    readonly readable: ReadableStream<Uint8Array>;
    readonly writable: WritableStream<Uint8Array>;
    readonly opened: Promise<SocketInfo>;
    readonly closed: Promise<void>;
    readonly upgraded: boolean;
    readonly secureTransport: "off" | "on" | "starttls";
    close(): Promise<void>;
    /** Speaks TLS from now on. This socket cannot be used afterwards, the returned one can. */
    startTls(options?: { expectedServerHostname?: string }): Socket;
  }
  /** Opens a TCP connection to "HOST:PORT". Throws where no event runs. */
  export function connect(address: string | SocketAddress, options?: SocketOptions): Socket;
}

declare module "node:async_hooks" {
  export import AsyncLocalStorage = globalThis.AsyncLocalStorage;
  export class AsyncResource {
    constructor(type: string);
    readonly type: string;
    runInAsyncScope<R, A extends any[]>(fn: (...args: A) => R, thisArg?: unknown, ...args: A): R;
    bind<F extends (...args: any[]) => any>(fn: F, thisArg?: unknown): F;
    static bind<F extends (...args: any[]) => any>(fn: F, type?: string, thisArg?: unknown): F;
    emitDestroy(): this;
  }
  const all: { AsyncLocalStorage: typeof AsyncLocalStorage; AsyncResource: typeof AsyncResource };
  export default all;
}

declare module "async_hooks" {
  export * from "node:async_hooks";
  export { default } from "node:async_hooks";
}

/** Files of these kinds are their text. */
declare module "*.txt" { const text: string; export default text; }
declare module "*.md" { const text: string; export default text; }
declare module "*.csv" { const text: string; export default text; }
declare module "*.sql" { const text: string; export default text; }
declare module "*.html" { const text: string; export default text; }
declare module "*.css" { const text: string; export default text; }
declare module "*.bin" { const data: ArrayBuffer; export default data; }
