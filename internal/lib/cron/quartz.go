package cron

import (
	"fmt"
	"regexp"
	"strings"
)

// Other schedulers know signs of Quartz in the fields of days: L, W and #. What to write in their place says the error.
var (
	lastOfMonth   = regexp.MustCompile(`^(?i:L|LW|WL|L-\d+|L-\d+W)$`)
	nearWorkday   = regexp.MustCompile(`^(?i:\d{1,2}W|W)$`)
	lastOfWeekday = regexp.MustCompile(`^(?i:L|([0-7]|sun|mon|tue|wed|thu|fri|sat)L)$`)
	nthOfWeekday  = regexp.MustCompile(`^\w+#\w+$`)
)

// refuse returns an error for an expression with signs of Quartz.
func refuse(expression string) error {
	fields := strings.Fields(expression)
	if len(fields) < 5 || len(fields) > 6 {
		return nil
	}
	days, weekdays := len(fields)-3, len(fields)-1
	for i, field := range fields {
		for one := range strings.SplitSeq(field, ",") {
			if instead := insteadOf(one, i == days, i == weekdays); instead != "" {
				return fmt.Errorf("cron is %.70q: %.20s is not known here: %s", expression, one, instead)
			}
		}
	}
	return nil
}

// insteadOf says what to write instead of one item of a field; "" = it is no sign of Quartz.
func insteadOf(item string, days, weekdays bool) string {
	const handler = ", and let the handler return at once unless "
	switch {
	case days && strings.ContainsAny(item, "wW") && lastOfMonth.MatchString(item):
		return "write 26-31 as the day of the month" + handler + "it is the last weekday of the month"
	case days && strings.EqualFold(item, "L"):
		return "write 28-31 as the day of the month" + handler + "tomorrow is the 1st"
	case days && lastOfMonth.MatchString(item):
		return "write the days of the month that it can be" + handler + "it is that many days before the last"
	case days && nearWorkday.MatchString(item):
		return "write that day and the two on each side, like 13-17 for 15W" + handler + "it is the weekday nearest to the day"
	case weekdays && strings.EqualFold(item, "L"):
		return "write 6 or SAT as the day of the week"
	case weekdays && lastOfWeekday.MatchString(item):
		return "write " + item[:len(item)-1] + " as the day of the week" + handler + "the day a week later is of the next month"
	case weekdays && nthOfWeekday.MatchString(item):
		weekday, n, _ := strings.Cut(item, "#")
		return "write " + weekday + " as the day of the week" + handler + "it is week " + n +
			" of the month: days 1 to 7 are week 1"
	}
	return ""
}
