// What a Pinwheel worker has beside the web platform, for editors and for tsc.
//
//   pinwheel types > pinwheel.d.ts
//
// and in tsconfig.json (or jsconfig.json): "lib": ["ESNext", "WebWorker"], "types": [], with pinwheel.d.ts among the files.
// Not there, though lib.webworker.d.ts has them: SharedArrayBuffer, Atomics, WebAssembly, importScripts, postMessage, caches,
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
interface ExecutionContext {
  /** Keeps the event going until the promise has settled, after the reply. Throws once the event is over. */
  waitUntil(promise: unknown): void;
  /** Does nothing; it is here for handlers that were written for other runtimes. */
  passThroughOnException(): void;
}

/** Two ends of a WebSocket, in mode persistent only: one is accepted, the other one goes to the client with the Response. */
declare const WebSocketPair: { new (): { 0: WebSocket; 1: WebSocket } };

interface WebSocket {
  /** Takes an end of a WebSocketPair for the worker. What it sends waits until the client has the other end. */
  accept(): void;
}

interface ResponseInit {
  /** The client's end of a WebSocketPair; the status is 101. */
  webSocket?: WebSocket | null;
}

interface Response {
  readonly webSocket: WebSocket | null;
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
  /** The body: what its JSON says if it is JSON, else its bytes. Throws if it should be JSON and is not, which fails the event for good. */
  readonly payload: Payload;
  text(): Promise<string>;
  json(): Promise<any>;
  bytes(): Promise<ReturnType<typeof Uint8Array.of>>; // Uint8Array<ArrayBuffer> since TypeScript 5.7, Uint8Array before
  /** If this attempt fails, it is the last one. */
  noRetry(): void;
  /** If this attempt fails, the next one comes after `delaySeconds`, or after the usual delay. */
  retry(options?: { delaySeconds?: number }): void;
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
}

interface QueueSendOptions {
  contentType?: "json" | "text" | "bytes";
  /** Run the task so many seconds from now, with fractions: 0 to 31622400, which is 366 days. Default: at once. */
  delaySeconds?: number;
  /** Headers of the NATS message: event.headers there. */
  headers?: HeadersInit;
}

// ---- globals ----

interface RequestInit {
  /** Must be "half" when the body is a stream. */
  duplex?: "half";
}

// What the library lacks of the web platform; docs/reference/web-apis.md lists all there is.

interface Request {
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
