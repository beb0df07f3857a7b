// A JSON API of pure computation: loan repayment schedules and unit conversion. It keeps no state, so any number of
// isolates may answer.
//
//   pinwheel dev examples/json-api.ts
//   pinwheel send fetch dev/json-api --path '/units/km/mi?value=42.195'
//   pinwheel send fetch dev/json-api --path /loans --data '{"principal":250000,"annualRate":3.6,"months":360}'

type Handler = (request: Request, params: string[], url: URL) => Response | Promise<Response>;

interface Route {
  method: string;
  path: RegExp;
  handler: Handler;
}

const routes: Route[] = [
  { method: "GET", path: /^\/units$/, handler: listUnits },
  { method: "GET", path: /^\/units\/([^/]+)\/([^/]+)$/, handler: convert },
  { method: "POST", path: /^\/loans$/, handler: loan },
];

export default {
  async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    const allowed: string[] = [];
    for (const route of routes) {
      const match = route.path.exec(url.pathname);
      if (match === null) continue;
      if (route.method === request.method) {
        return route.handler(request, match.slice(1), url);
      }
      allowed.push(route.method);
    }
    if (allowed.length > 0) {
      return problem(405, `${request.method} is not allowed here`, {}, { allow: allowed.join(", ") });
    }
    return problem(404, `there is nothing at ${url.pathname}`);
  },
};

function problem(status: number, error: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}): Response {
  const body = Object.keys(fields).length > 0 ? { error, fields } : { error };
  return Response.json(body, { status, headers });
}

// Units: each quantity has a base unit, and each unit an offset and a factor to it.

interface Unit {
  quantity: string;
  factor: number;
  offset?: number; // added after multiplying
}

const units: Record<string, Unit> = {
  m: { quantity: "length", factor: 1 },
  km: { quantity: "length", factor: 1000 },
  ft: { quantity: "length", factor: 0.3048 },
  mi: { quantity: "length", factor: 1609.344 },
  kg: { quantity: "mass", factor: 1 },
  lb: { quantity: "mass", factor: 0.45359237 },
  oz: { quantity: "mass", factor: 0.028349523125 },
  K: { quantity: "temperature", factor: 1 },
  C: { quantity: "temperature", factor: 1, offset: 273.15 },
  F: { quantity: "temperature", factor: 5 / 9, offset: 273.15 - (32 * 5) / 9 },
};

function listUnits(): Response {
  const byQuantity: Record<string, string[]> = {};
  for (const [name, unit] of Object.entries(units)) {
    (byQuantity[unit.quantity] ??= []).push(name);
  }
  return Response.json(byQuantity);
}

function convert(_request: Request, [from, to]: string[], url: URL): Response {
  const source = Object.hasOwn(units, from) ? units[from] : undefined;
  const target = Object.hasOwn(units, to) ? units[to] : undefined;
  if (source === undefined || target === undefined) {
    return problem(404, `unknown unit ${source === undefined ? from : to}`);
  }
  if (source.quantity !== target.quantity) {
    return problem(422, `${from} is a ${source.quantity} and ${to} is a ${target.quantity}`);
  }
  const text = url.searchParams.get("value") ?? "";
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value)) {
    return problem(400, "value must be a number", { value: text });
  }
  const base = value * source.factor + (source.offset ?? 0);
  return Response.json({ value, from, to, result: round((base - (target.offset ?? 0)) / target.factor, 9) });
}

// Loans: an annuity with a payment each month, in cents, so that the sums are exact.

interface Loan {
  principal: number;
  annualRate: number;
  months: number;
}

interface Payment {
  month: number;
  payment: number;
  interest: number;
  principal: number;
  balance: number;
}

async function loan(request: Request): Promise<Response> {
  let body: unknown;
  try {
    body = await request.json();
  } catch {
    return problem(400, "the body is not JSON");
  }
  if (typeof body !== "object" || body === null || Array.isArray(body)) {
    return problem(400, "the body must be a JSON object");
  }
  const input = body as Partial<Record<keyof Loan, unknown>>;
  const fields: Record<string, string> = {};
  const principal = number(input, "principal", 1, 1e9, fields);
  const annualRate = number(input, "annualRate", 0, 100, fields);
  const months = number(input, "months", 1, 600, fields);
  if (!Number.isInteger(months) && fields.months === undefined) {
    fields.months = "must be a whole number";
  }
  if (Object.keys(fields).length > 0) {
    return problem(422, "the loan is not valid", fields);
  }
  const schedule = amortize({ principal, annualRate, months });
  const total = schedule.reduce((sum, p) => sum + Math.round(p.payment * 100), 0) / 100;
  return Response.json({
    payment: schedule[0].payment,
    total,
    interest: round(total - principal, 2),
    schedule,
  });
}

function number(input: Partial<Record<keyof Loan, unknown>>, name: keyof Loan, min: number, max: number, fields: Record<string, string>): number {
  const value = input[name];
  if (typeof value !== "number" || value < min || value > max) {
    fields[name] = `must be a number from ${min} to ${max}`;
    return NaN;
  }
  return value;
}

function amortize({ principal, annualRate, months }: Loan): Payment[] {
  const rate = annualRate / 100 / 12;
  let balance = Math.round(principal * 100);
  const annuity = rate === 0 ? balance / months : (balance * rate) / (1 - (1 + rate) ** -months);
  const level = Math.round(annuity);
  const schedule: Payment[] = [];
  for (let month = 1; month <= months; month++) {
    const interest = Math.round(balance * rate);
    // The last payment takes what rounding has left.
    const repaid = month === months ? balance : Math.min(balance, level - interest);
    balance -= repaid;
    schedule.push({
      month,
      payment: (interest + repaid) / 100,
      interest: interest / 100,
      principal: repaid / 100,
      balance: balance / 100,
    });
  }
  return schedule;
}

function round(value: number, digits: number): number {
  const factor = 10 ** digits;
  return Math.round(value * factor) / factor;
}
