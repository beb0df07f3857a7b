// events/routes.js is the object `routes` of export default: what answers at which path. Bun and Buntime have its shape.
// A path has literal segments, :name for one segment, :name+ for one segment or more at the end, and * at the end for
// everything. Of several paths that match, the one that is more exact from the left answers. Segments are compared
// without their escapes, as the gateway compares paths (events.Path): /%61dmin is /admin.

"use strict";

const {
  ArrayIsArray, ArrayPrototypeSort, DecodeURIComponent, List, Map, MapPrototypeForEach, MapPrototypeGet, MapPrototypeHas,
  MapPrototypeSet, ObjectDefineProperty, ObjectKeys, ObjectPrototype, ReflectGetPrototypeOf, StringPrototypeCharCodeAt,
  StringPrototypeEndsWith, StringPrototypeIncludes, StringPrototypeSlice, StringPrototypeStartsWith, TypeError, sealedProto,
} = primordials;
const { ResponseState, isObject, parseURL, peekResponse, serializePath } = internal;

const ANY = "*"; // the method of an answer for all methods

// The kinds of segments. A lower one is more exact.
const LITERAL = 0;
const NAME = 1;
const NAMES = 2; // the rest of the path, not empty
const REST = 3; // the rest of the path

class Segment {
  kind;
  text; // of a LITERAL as canonical has it, else the name of the parameter
  constructor(kind, text) {
    this.kind = kind;
    this.text = text;
  }
}
sealedProto(Segment);

class Route {
  path; // as in the object
  segments;
  answers; // Map: method → function or Response
  constructor(path, segments, answers) {
    this.path = path;
    this.segments = segments;
    this.answers = answers;
  }
}
sealedProto(Route);

class Routes {
  exact = new Map(); // path → Route without parameters
  others = new List(); // the more exact first
}
sealedProto(Routes);

// Match is what routes say of a request. answer is undefined when no route has the path, or none has the method.
class Match {
  answer;
  params;
  allow = ""; // the methods that the path has, when the method of the request is none of them
}
sealedProto(Match);

// ---- reading the object ----

function wrong(path, text) {
  return new TypeError(`routes: ${internal.inspectBrief(path)}: ${text}`);
}

function isName(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    const letter = c >= 0x61 && c <= 0x7a || c >= 0x41 && c <= 0x5a || c === 0x5f;
    if (!letter && (i === 0 || c < 0x30 || c > 0x39)) return false;
  }
  return text.length > 0;
}

function parseSegment(path, text, last) {
  if (text === ANY && last) return new Segment(REST, ANY);
  if (StringPrototypeIncludes(text, ANY)) throw wrong(path, "* is the whole last segment");
  if (!StringPrototypeStartsWith(text, ":")) return new Segment(LITERAL, canonical(text));
  const many = StringPrototypeEndsWith(text, "+");
  const name = StringPrototypeSlice(text, 1, many ? text.length - 1 : text.length);
  if (!isName(name)) throw wrong(path, "a parameter is a colon and a name of letters, digits and _");
  if (many && !last) throw wrong(path, `:${name}+ is the last segment`);
  return new Segment(many ? NAMES : NAME, name);
}

function parsePath(path) {
  const record = StringPrototypeStartsWith(path, "/") ? parseURL(`http://h${path}`, null) : null;
  if (record === null || record.query !== null || record.fragment !== null) {
    throw wrong(path, "a path begins with / and has no ? or #");
  }
  const segments = new List();
  for (let i = 0; i < record.path.length; i++) {
    const segment = parseSegment(path, record.path[i], i === record.path.length - 1);
    for (let j = 0; j < i; j++) {
      if (segment.kind !== LITERAL && segments[j].kind !== LITERAL && segments[j].text === segment.text) {
        throw wrong(path, `the name ${segment.text} is there twice`);
      }
    }
    segments[i] = segment;
  }
  return segments;
}

// toAnswer returns what answers requests, or undefined. A Response answers more than one, so its body must be whole.
function toAnswer(path, value) {
  if (typeof value === "function") return value;
  if (internal.isBlob(value)) {
    const type = internal.blobType(value);
    return internal.newResponse(new ResponseState(200, type === "" ? [] : ["content-type", type], value));
  }
  const s = peekResponse(value);
  if (s === undefined) return undefined;
  if (s.stream !== null || s.used || s.status === 0) throw wrong(path, "the Response has a stream, was read, or is an error");
  return value;
}

function isMethod(text) {
  for (let i = 0; i < text.length; i++) {
    const c = StringPrototypeCharCodeAt(text, i);
    if (c < 0x41 || c > 0x5a) return false;
  }
  return text.length > 0;
}

function toAnswers(path, value) {
  const answers = new Map();
  const only = toAnswer(path, value);
  if (only !== undefined) {
    MapPrototypeSet(answers, ANY, only);
    return answers;
  }
  const methods = isObject(value) ? ObjectKeys(value) : [];
  if (methods.length === 0) {
    throw wrong(path, `${internal.inspectBrief(value)} is no function, Response or Blob, nor an object of them by method`);
  }
  for (let i = 0; i < methods.length; i++) {
    const answer = isMethod(methods[i]) ? toAnswer(path, value[methods[i]]) : undefined;
    if (answer === undefined) {
      throw wrong(path, `${internal.inspectBrief(methods[i])} is no method like GET with a function, Response or Blob`);
    }
    MapPrototypeSet(answers, methods[i], answer);
  }
  return answers;
}

function compare(a, b) {
  for (let i = 0; i < a.segments.length && i < b.segments.length; i++) {
    const s = a.segments[i];
    const t = b.segments[i];
    if (s.kind !== t.kind) return s.kind - t.kind;
    if (s.kind === LITERAL && s.text !== t.text) return s.text < t.text ? -1 : 1;
  }
  return b.segments.length - a.segments.length;
}

// readRoutes reads the property once, while the module is loaded. It returns null if the property is something else:
// the apps of some routers have an array of this name.
internal.readRoutes = (object) => {
  if (!isPlain(object)) return null;
  const routes = new Routes();
  const paths = ObjectKeys(object);
  for (let i = 0; i < paths.length; i++) {
    const segments = parsePath(paths[i]);
    const route = new Route(paths[i], segments, toAnswers(paths[i], object[paths[i]]));
    if (!isExact(segments)) {
      routes.others[routes.others.length] = route;
      continue;
    }
    const texts = new List();
    for (let j = 0; j < segments.length; j++) texts[j] = segments[j].text;
    const path = join(texts);
    if (MapPrototypeHas(routes.exact, path)) throw wrong(route.path, `it is the path of ${MapPrototypeGet(routes.exact, path).path}`);
    MapPrototypeSet(routes.exact, path, route);
  }
  ArrayPrototypeSort(routes.others, compare);
  for (let i = 1; i < routes.others.length; i++) {
    if (compare(routes.others[i - 1], routes.others[i]) === 0) {
      throw wrong(routes.others[i].path, `it matches the paths of ${routes.others[i - 1].path}`);
    }
  }
  return routes;
};

function isPlain(value) {
  if (!isObject(value) || typeof value === "function" || ArrayIsArray(value)) return false;
  const proto = ReflectGetPrototypeOf(value);
  return proto === null || proto === ObjectPrototype;
}

function isExact(segments) {
  for (let i = 0; i < segments.length; i++) if (segments[i].kind !== LITERAL) return false;
  return true;
}

function join(texts) {
  let out = "";
  for (let i = 0; i < texts.length; i++) out += `/${texts[i]}`;
  return out;
}

// canonical is the one form of an escaped segment. One with an escaped slash, backslash or NUL, or that is not UTF-8, is
// that of no other: it begins with a backslash, which no other has.
function canonical(text) {
  if (!StringPrototypeIncludes(text, "%")) return text;
  let plain;
  try {
    plain = DecodeURIComponent(text);
  } catch {
    return `\\${text}`;
  }
  const other = StringPrototypeIncludes(plain, "/") || StringPrototypeIncludes(plain, "\\") || StringPrototypeIncludes(plain, "\0");
  return other ? `\\${text}` : plain;
}

function canonicalPath(path) {
  const out = new List();
  for (let i = 0; i < path.length; i++) out[i] = canonical(path[i]);
  return out;
}

// ---- finding an answer ----

function fits(route, path) {
  const { segments } = route;
  for (let i = 0; i < segments.length; i++) {
    const { kind, text } = segments[i];
    if (kind === REST) return path.length > i;
    if (path.length <= i || kind === LITERAL && path[i] !== text || kind !== LITERAL && path[i] === "") return false;
    if (kind === NAMES) return true;
  }
  return path.length === segments.length;
}

function decoded(text) {
  try {
    return DecodeURIComponent(text);
  } catch { // a % that escapes no byte, or bytes that are no UTF-8
    return text;
  }
}

function paramsOf(route, path) {
  const params = {};
  for (let i = 0; i < route.segments.length; i++) {
    const { kind, text } = route.segments[i];
    if (kind === LITERAL) continue;
    let value = decoded(path[i]);
    if (kind !== NAME) for (let j = i + 1; j < path.length; j++) value += `/${decoded(path[j])}`;
    ObjectDefineProperty(params, text, { __proto__: null, value, writable: true, enumerable: true, configurable: true });
  }
  return params;
}

function answerOf(route, method) {
  return MapPrototypeGet(route.answers, method) ?? (method === "HEAD" ? MapPrototypeGet(route.answers, "GET") : undefined) ??
    MapPrototypeGet(route.answers, ANY);
}

// matchRoute says which answer a request has. The URL is that of the state of a Request.
internal.matchRoute = (routes, method, url) => {
  const match = new Match();
  const record = parseURL(url, null);
  const escaped = serializePath(record);
  const same = !StringPrototypeIncludes(escaped, "%");
  const path = same ? record.path : canonicalPath(record.path);
  let route = MapPrototypeGet(routes.exact, same ? escaped : join(path));
  for (let i = 0; route === undefined && i < routes.others.length; i++) {
    if (fits(routes.others[i], path)) route = routes.others[i];
  }
  if (route === undefined) return match;
  match.answer = answerOf(route, method);
  if (match.answer !== undefined) match.params = paramsOf(route, record.path);
  else MapPrototypeForEach(route.answers, (_, name) => { match.allow += match.allow === "" ? name : `, ${name}`; });
  return match;
};

// noRoute is the Response to a request that no route answers.
internal.noRoute = (allow) => {
  const type = "text/plain;charset=UTF-8";
  const s = allow === "" ? new ResponseState(404, ["content-type", type], "no route has this path\n")
    : new ResponseState(405, ["content-type", type, "allow", allow], "the route does not have this method\n");
  return internal.newResponse(s);
};
