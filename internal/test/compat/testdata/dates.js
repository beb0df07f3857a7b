import { addBusinessDays, differenceInCalendarDays, endOfMonth, format, formatDistance, formatISO, intervalToDuration, parse, parseISO } from "date-fns";
import { de } from "date-fns/locale";
import dayjs from "dayjs";
import duration from "dayjs/plugin/duration";
import relativeTime from "dayjs/plugin/relativeTime";
import timezone from "dayjs/plugin/timezone";
import utc from "dayjs/plugin/utc";
import weekOfYear from "dayjs/plugin/weekOfYear";
import "dayjs/locale/fr";

[duration, relativeTime, timezone, utc, weekOfYear].forEach((plugin) => dayjs.extend(plugin));

export default {
  async scheduled(event) {
    const at = new Date(event.scheduledTime);
    const d = dayjs.utc(at);
    return {
      dateFns: {
        format: format(at, "yyyy-MM-dd'T'HH:mm xxx"), german: format(at, "EEEE, d. MMMM yyyy", { locale: de }), iso: formatISO(endOfMonth(at), { representation: "date" }),
        business: formatISO(addBusinessDays(at, 5), { representation: "date" }), days: differenceInCalendarDays(at, parseISO("2024-02-28")),
        distance: formatDistance(parseISO("2024-01-01"), at, { addSuffix: true }), parsed: parse("29/02/2024", "dd/MM/yyyy", new Date(0)).getTime(),
        duration: intervalToDuration({ start: new Date(0), end: new Date(90_061_000) }),
      },
      dayjs: {
        format: d.format("YYYY-MM-DD HH:mm:ss Z"), zurich: d.tz("Europe/Zurich").format("YYYY-MM-DD HH:mm Z"), french: d.locale("fr").format("dddd D MMMM"),
        week: d.week(), from: d.add(3, "day").from(d), iso: dayjs.duration(90_061, "seconds").toISOString(), invalid: dayjs("nonsense").isValid(),
      },
    };
  },
};
