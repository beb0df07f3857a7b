// fetch/rewriter_records.js goes through the records of an HTMLRewriter, which say where the tokens are that have handlers.
// It calls the handlers, and puts what they made of the tokens between the bytes that nobody touched.

"use strict";

const {
  List, MapPrototypeDelete, MapPrototypeGet, MapPrototypeSet, ReflectApply, subarray,
} = primordials;
const { isObject, rewriterStates, rewriterTokens } = internal;
const { CommentState, DoctypeState, DocumentEndState, ElementState, EndTagState, TextState, lower, quoted } = rewriterStates;
const { comment, doctype, documentEnd, element, endTag, text } = rewriterTokens;
const { decode, encode } = host;

// Kinds of records.
const ELEMENT = 1;
const END = 2;
const TEXT = 3;
const COMMENT = 4;

// ---- the output ----

// pass puts the bytes that come before to into the output.
function pass(r, to) {
  if (r.hidden === 0 && to > r.from) r.out[r.out.length] = subarray(r.bytes, r.from, to);
  r.from = to;
}

function put(r, html) {
  if (r.hidden === 0 && html !== "") r.out[r.out.length] = encode(html);
}

// replace puts a token that is from start to end into the output as handlers have changed it. html is what it is now, or
// null if it is as it was.
function replace(r, around, start, end, html) {
  if (html === null && !around.removed && around.before === "" && around.after === "") return;
  pass(r, start);
  put(r, around.before);
  if (around.removed) put(r, around.replacement);
  else if (html === null) pass(r, end);
  else put(r, html);
  put(r, around.after);
  r.from = end;
}

// ---- handlers ----

// callAll calls handlers with objects of a kind of token: a list of handler, object with the handlers, and so on. It returns
// null, or a promise that settles when all are done.
function callAll(kind, state, calls, from = 0) {
  for (let i = from; i < calls.length; i += 2) {
    const called = callOne(kind, state, calls[i], calls[i + 1]);
    if (called !== null) return later(called, () => callAll(kind, state, calls, i + 2));
  }
  return null;
}

function callOne(kind, state, handler, self) {
  const object = kind.make(state);
  let result;
  let returned = false;
  try {
    result = ReflectApply(handler, self, [object]);
    returned = true;
  } finally {
    if (!returned || !isObject(result)) kind.finish(object);
  }
  return isObject(result) ? settled(kind, object, result) : null;
}

async function settled(kind, object, result) {
  try {
    await result;
  } finally {
    kind.finish(object);
  }
}

// later calls next when a promise is fulfilled, and waits for what that returns.
async function later(promise, next) {
  await promise;
  const more = next();
  if (more !== null) await more;
}

// then calls next now, or when the promise is fulfilled.
function then(promise, next) {
  return promise === null ? next() : later(promise, next);
}

// callsOf returns the handlers with this name: of the entries that a record lists, and of the document.
function callsOf(r, numbers, at, name) {
  const calls = new List();
  const count = numbers[at];
  for (let i = 0; i < count; i++) addCall(calls, r.entries[numbers[at + 1 + i]], name);
  for (let i = 0; i < r.documents.length; i++) addCall(calls, r.documents[i], name);
  return calls;
}

function addCall(calls, entry, name) {
  if (entry[name] === null) return;
  calls[calls.length] = entry[name];
  calls[calls.length] = entry.self;
}

// ---- records: isolates/offload/rewriter/stream.go says what is in them ----

// after returns where the record after the one at i begins.
function after(numbers, i) {
  switch (numbers[i]) {
    case ELEMENT: {
      const at = i + 8 + numbers[i + 7];
      return at + 1 + 5 * numbers[at];
    }
    case END: return i + 6 + numbers[i + 5];
    case TEXT: return i + 5 + numbers[i + 4];
    case COMMENT: return i + 6 + numbers[i + 5];
    default: return i + 9;
  }
}

function handle(r, numbers, i) {
  switch (numbers[i]) {
    case ELEMENT: return handleElement(r, numbers, i);
    case END: return handleEnd(r, numbers, i);
    case TEXT: return handleText(r, numbers, i);
    case COMMENT: return handleComment(r, numbers, i);
    default: return handleDoctype(r, numbers, i);
  }
}

function part(r, from, to) {
  return from < 0 ? null : decode(subarray(r.bytes, from, to), false);
}

function handleElement(r, numbers, i) {
  const entries = numbers[i + 7];
  const state = new ElementState(r.bytes, numbers, i + 8 + entries, part(r, numbers[i + 5], numbers[i + 6]), numbers[i + 3]);
  state.removed = r.hidden > 0;
  const calls = new List();
  for (let n = 0; n < entries; n++) addCall(calls, r.entries[numbers[i + 8 + n]], "element");
  return then(callAll(element, state, calls), () => putElement(r, state, numbers[i + 4], numbers[i + 1], numbers[i + 2]));
}

function putElement(r, state, id, start, end) {
  if (state.changed && !state.removed && r.hidden === 0) {
    pass(r, start);
    put(r, state.before);
    putTag(r, state);
    put(r, state.after);
    r.from = end;
  } else replace(r, state, start, end, null);
  // What an open element keeps is only what its end tag needs.
  state.bytes = state.numbers = state.list = null;
  state.before = state.after = state.replacement = "";
  if (!state.content || (!state.emptied && !state.renamed && state.end === null && state.onEnd === null)) return null;
  MapPrototypeSet(r.open, id, state);
  if (state.emptied) {
    pass(r, end);
    r.hidden++;
  }
  return null;
}

// putTag writes a start tag. An attribute that nobody has set stays as it was written.
function putTag(r, state) {
  put(r, `<${state.name}`);
  const list = state.attributes();
  for (let i = 0; i < list.length; i++) {
    const { written, value, raw } = list[i];
    put(r, raw === null ? ` ${written}="${quoted(value)}"` : " ");
    if (raw !== null) r.out[r.out.length] = raw;
  }
  put(r, state.selfClosed ? list.length > 0 ? " />" : "/>" : ">");
}

// handleEnd has the end tag of elements, the outermost first. What an outer one makes of it replaces what an inner one does.
function handleEnd(r, numbers, i) {
  const count = numbers[i + 5];
  const states = new List();
  for (let n = 0; n < count; n++) {
    const id = numbers[i + 6 + n];
    const state = MapPrototypeGet(r.open, id);
    if (state === undefined) continue;
    MapPrototypeDelete(r.open, id);
    states[states.length] = state;
  }
  if (states.length === 0) return null;
  pass(r, numbers[i + 1]);
  for (let n = 0; n < states.length; n++) if (states[n].emptied) r.hidden--;
  const tag = new EndTagState(part(r, numbers[i + 3], numbers[i + 4]));
  const endOf = (n) => {
    for (; n >= 0; n--) {
      const { end, name, onEnd, renamed } = states[n];
      if (renamed) {
        tag.name = name;
        tag.renamed = true;
      }
      if (end !== null) {
        tag.before = end.before;
        tag.after = end.after;
        tag.removed = end.removed;
      }
      if (onEnd === null) continue;
      const called = callOne(endTag, tag, onEnd, undefined);
      if (called !== null) return later(called, () => endOf(n - 1));
    }
    replace(r, tag, numbers[i + 1], numbers[i + 2], tag.renamed ? `</${tag.name}>` : null);
    return null;
  };
  return endOf(states.length - 1);
}

// handleText has a part of a text node. A text node ends with an empty chunk.
function handleText(r, numbers, i) {
  const calls = callsOf(r, numbers, i + 4, "text");
  const start = numbers[i + 1];
  const end = numbers[i + 2];
  const chunk = (from, last) => {
    const state = new TextState(from < end ? part(r, from, end) : "", last);
    return then(callAll(text, state, calls), () => {
      replace(r, state, from, end, null);
      return null;
    });
  };
  const ending = () => (numbers[i + 3] === 1 ? chunk(end, true) : null);
  return start < end ? then(chunk(start, false), ending) : ending();
}

function handleComment(r, numbers, i) {
  const state = new CommentState(part(r, numbers[i + 3], numbers[i + 4]));
  return then(callAll(comment, state, callsOf(r, numbers, i + 5, "comments")), () => {
    replace(r, state, numbers[i + 1], numbers[i + 2], state.changed ? `<!--${state.text}-->` : null);
    return null;
  });
}

function handleDoctype(r, numbers, i) {
  const name = part(r, numbers[i + 3], numbers[i + 4]);
  const state = new DoctypeState(name === null ? null : lower(name), part(r, numbers[i + 5], numbers[i + 6]),
    part(r, numbers[i + 7], numbers[i + 8]));
  const calls = new List();
  for (let n = 0; n < r.documents.length; n++) addCall(calls, r.documents[n], "doctype");
  return callAll(doctype, state, calls);
}

// finish calls the handlers of the end, the last first.
async function finish(r) {
  const state = new DocumentEndState();
  const calls = new List();
  for (let n = r.documents.length - 1; n >= 0; n--) addCall(calls, r.documents[n], "end");
  const called = callAll(documentEnd, state, calls);
  if (called !== null) await called;
  r.hidden = 0;
  put(r, state.text);
  r.finished = true;
}

internal.rewriterRecords = { __proto__: null, after, finish, handle, pass };
