package report

import "strings"

// metric is a figure of a round. Its name, as in the JSON file, ends with its unit.
type metric struct {
	name   string
	higher bool // higher is better
	digits int  // digits after the decimal point
	shown  bool // shown in the table on the terminal
}

// metrics returns all metrics, in the order of reports. Reports leave out those that a case does not have.
func metrics() []metric {
	return []metric{
		{"events/s", true, 0, true},
		{"requests/s", true, 0, true},
		{"MB/s", true, 0, true},
		{"seconds", false, 2, false},
		{"p50 ms", false, 2, true},
		{"p90 ms", false, 2, true},
		{"p99 ms", false, 2, true},
		{"p99.9 ms", false, 2, true},
		{"p99.99 ms", false, 2, true},
		{"max ms", false, 2, true},
		{"p99 first 5 s ms", false, 2, true},
		{"p99 alone ms", false, 2, true},
		{"p99 beside/alone", false, 2, true},
		{"warm %", true, 1, true},
		{"lag p99 ms", false, 3, true},
		{"cpu µs/event", false, 1, true}, // of a benchmark's process
		{"fleet µs/event", false, 1, true},
		{"nats µs/event", false, 1, true},
		{"load µs/event", false, 1, true},
		{"p50 ms/run", false, 2, true},
		{"fleet ms/run", false, 2, true},
		{"p50 µs/call", false, 1, true}, // each with its share of the request
		{"fleet µs/call", false, 1, true},
		{"nats µs/call", false, 1, true},
		{"fleet ms/GB", false, 0, true}, // of a body, each way
		{"load ms/GB", false, 0, true},
		{"fleet µs/request", false, 1, true},
		{"nats µs/request", false, 1, true},
		{"load µs/request", false, 1, true},
		{"KB/socket", false, 1, true},
		{"fleet cores", false, 2, false},
		{"nats cores", false, 2, false},
		{"load cores", false, 2, false},
		{"MB without", false, 0, true}, // WebSockets
		{"fleet peak MB", false, 0, true},
		{"fleet MB", false, 0, true},
		{"nats peak MB", false, 0, false},
		{"nats MB", false, 0, false},
		{"foreign cores", false, 2, true},
	}
}

// informative metrics are not compared: they describe the measurement, not the measured system.
func (m metric) informative() bool {
	return strings.HasPrefix(m.name, "load ") || strings.HasPrefix(m.name, "lag ") || strings.HasPrefix(m.name, "foreign ")
}
