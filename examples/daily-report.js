// A scheduled handler. Each tick makes the report of the day before it, in UTC. The report goes to the queue
// REPORTS when the worker has one (--queue REPORTS=mailer), and is the event's result otherwise.
//
// It ticks at one in the morning, UTC, as its manifest says. By hand:
//
//   pinwheel send scheduled dev/daily-report --time 2026-01-01T01:00:00Z
//
// With the variable ORDERS_URL the report counts the day's orders: the URL, with ?from=…&to=…, must answer
// with a JSON array of {"amount": number, "country": string}.

const DAY = 24 * 60 * 60 * 1000;

export default {
  async scheduled(event, env) {
    const tick = event.scheduledTime || Date.now();
    const end = Math.floor(tick / DAY) * DAY;
    /** @type {{ from: string, to: string, [more: string]: any }} */
    const report = {
      // The same tick always makes the same id, so that a recipient can recognise a report that comes twice.
      id: `daily-${date(end - DAY)}`,
      from: new Date(end - DAY).toISOString(),
      to: new Date(end).toISOString(),
      ...calendar(end - DAY),
    };
    if (env.ORDERS_URL) {
      report.orders = summarize(await orders(env.ORDERS_URL, report));
    }
    if (env.REPORTS) {
      await env.REPORTS.send(report);
      return { sent: report.id };
    }
    return report;
  },
};

function date(time) {
  return new Date(time).toISOString().slice(0, 10);
}

// calendar says where in the week, month and year the day is.
function calendar(time) {
  const day = new Date(time);
  const year = day.getUTCFullYear();
  const month = day.getUTCMonth();
  const weekday = day.getUTCDay() || 7; // Monday is 1
  // ISO 8601: a week belongs to the year that its Thursday is in.
  const thursday = new Date(time + (4 - weekday) * DAY);
  const week = Math.ceil(((thursday.getTime() - Date.UTC(thursday.getUTCFullYear(), 0, 1)) / DAY + 1) / 7);
  return {
    weekday,
    week: `${thursday.getUTCFullYear()}-W${String(week).padStart(2, "0")}`,
    dayOfYear: (time - Date.UTC(year, 0, 1)) / DAY + 1,
    quarter: Math.floor(month / 3) + 1,
    daysLeftInMonth: (Date.UTC(year, month + 1, 1) - time) / DAY - 1,
  };
}

async function orders(address, { from, to }) {
  const url = new URL(address);
  url.searchParams.set("from", from);
  url.searchParams.set("to", to);
  const response = await fetch(url);
  if (!response.ok) {
    // A throw is tried again later, with growing delays.
    throw new Error(`orders: ${url.host} answers ${response.status}`);
  }
  return response.json();
}

function summarize(list) {
  const total = list.reduce((sum, order) => sum + order.amount, 0);
  const countries = {};
  for (const { country, amount } of list) {
    countries[country] = (countries[country] ?? 0) + amount;
  }
  return { count: list.length, total, mean: list.length > 0 ? total / list.length : 0, countries };
}
