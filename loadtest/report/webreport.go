package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// webSections are the sections about HTTP: one for what was asked for under each load, and one with the goals.
func (r *Report) webSections() []section {
	abouts := map[string]string{
		WebJSON: "POST of 1 KB of JSON, answered by the same handler", WebFile: "GET of a file of 10 KB",
		WebSockets: "WebSockets that carry nothing",
		WebCalls:   fmt.Sprintf("GET, answered by a handler that makes %d calls, one after the other. µs/call is a hundredth of the request, of which the function has the rest beside the call", CallsOfRequest),
		WebKernels: fmt.Sprintf("GET, answered by a handler that computes the same thing %d times; a run is one of them", RunsOfRequest),
		WebPipe:    "POST of a long body, answered by the same handler with the body of the request, which it does not read. ms/GB is CPU time for each 10⁹ bytes that are received and sent",
	}
	var list []section
	for _, web := range Webs() {
		for _, load := range []string{ClosedLoop, OpenLoop, IdleLoad} {
			cases := r.measured(func(c Case) bool { return c.Web == web && c.Load == load })
			if len(cases) == 0 {
				continue
			}
			s := section{title: "HTTP, " + web + ", " + load, about: abouts[web], table: r.table(cases)}
			switch c := cases[0].Case; {
			case web == WebCalls, web == WebKernels, web == WebPipe:
			case load == ClosedLoop:
				s.about += fmt.Sprintf(". %d connections, each of which sends its next request when it has the answer to the last one", c.Connections)
			case load == OpenLoop:
				s.about += fmt.Sprintf(". %d requests/s on %d connections. Latency counts from when a request was to be sent", c.Rate, c.Connections)
			}
			list = append(list, s)
		}
	}
	if goals := r.webGoals(); len(goals) > 1 {
		list = append(list, section{title: "HTTP, goals", about: "Medians of the tables above", table: goals})
	}
	return list
}

// goalOwners is the highest number of owners that a goal is for: Pinwheel has an isolate for each of so many.
const goalOwners = 100

// webGoals compares what was measured with what the design asks for.
func (r *Report) webGoals() table {
	t := table{{"goal", "measured", "met"}}
	var timesOfNode []float64
	add := func(goal string, value, limit float64, most bool) {
		met := "met"
		if most && value > limit || !most && value < limit {
			met = "not met"
		}
		t = append(t, []string{goal, fmt.Sprintf("%.2f", value), met})
	}
	for _, c := range r.measured(func(c Case) bool {
		return c.Web != "" && c.System == Ours && (c.Web != WebJSON || c.Owners <= goalOwners)
	}) {
		owners := fmt.Sprintf("%d owners: ", c.Owners)
		if c.Owners == 1 {
			owners = "1 owner: "
		}
		own := func(name string) float64 { s, _ := c.summary(name); return s.median }
		switch {
		case c.Call != "":
			r.callGoals(c, add)
		case c.Kernel != "":
			if v, ok := r.peerMedian(c, "node", c.headline()); ok {
				times := own(c.headline()) / v
				timesOfNode = append(timesOfNode, times)
				add(c.Kernel+": at most 1.6 × node's time", times, 1.6, true)
			}
		case c.Web == WebPipe:
			if perGB := own("fleet ms/GB"); perGB > 0 {
				add("a body that nobody reads: at least 1 GB/s for each core", 1000/perGB, 1, false)
			}
			if v, ok := r.peerMedian(c, "workerd", "MB/s"); ok {
				add("a body that nobody reads: at least workerd's MB/s", own("MB/s")/v, 1, false)
			}
		case c.Web == WebSockets:
			add(fmt.Sprintf("%d WebSockets: at most 25 KB each", c.Connections), own("KB/socket"), 25, true)
		case c.Web == WebFile && c.Load == ClosedLoop:
			if v, ok := r.peerMedian(c, "go", "requests/s"); ok {
				add("a file: at least 0.8 × the requests/s of Go's http.FileServer", own("requests/s")/v, 0.8, false)
			}
		case c.Web == WebJSON && c.Load == OpenLoop:
			if v, name, ok := r.leastMedian(c, "p99 ms"); ok {
				add(fmt.Sprintf("%sp99 at most 1.2 × the best peer's (%s)", owners, name), own("p99 ms")/v, 1.2, true)
			}
		case c.Web == WebJSON:
			if v, ok := r.peerMedian(c, "workerd", "requests/s"); ok {
				add(owners+"at least workerd's requests/s", own("requests/s")/v, 1, false)
			}
			if v, ok := r.peerMedian(c, "workerd", "fleet µs/request"); ok {
				add(owners+"at most 1.2 × workerd's CPU time per request", own("fleet µs/request")/v, 1.2, true)
			}
		}
	}
	if len(timesOfNode) == len(Kernels()) {
		add("kernels: at most 1.15 × node's time in the geometric mean", geometricMean(timesOfNode), 1.15, true)
	}
	return t
}

func geometricMean(list []float64) float64 {
	sum := 0.
	for _, v := range list {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(list)))
}

// callGoals compares a call with what the design asks for, less what a call of a function takes.
func (r *Report) callGoals(c *Result, add func(goal string, value, limit float64, most bool)) {
	function := c.Case
	function.Call = Calls()[0]
	base := r.find(function)
	if base == nil || base == c || len(base.Rounds) == 0 {
		return
	}
	more := func(name string) float64 {
		a, _ := c.summary(name)
		b, _ := base.summary(name)
		return a.median - b.median
	}
	if c.Call == "kv" {
		add("KV get of 1 KB: p50 at most 500 µs", more("p50 µs/call"), 500, true)
		add("KV get of 1 KB: at most 40 µs of the fleet's CPU time", more("fleet µs/call"), 40, true)
		return
	}
	add("service call, "+c.Call+": at most 60 µs over a function", more("p50 µs/call"), 60, true)
	add("service call, "+c.Call+": at most 60 µs of the fleet's CPU time over a function", more("fleet µs/call"), 60, true)
}

// besides returns the results of other systems in the same case.
func (r *Report) besides(c *Result) []*Result {
	return r.measured(func(o Case) bool {
		o.System = c.System
		return o == c.Case
	})
}

func (r *Report) peerMedian(c *Result, name, metric string) (float64, bool) {
	for _, o := range r.besides(c) {
		if s, ok := o.summary(metric); ok && o.System == name {
			return s.median, true
		}
	}
	return 0, false
}

// leastMedian returns the least median of the peers, and whose it is.
func (r *Report) leastMedian(c *Result, metric string) (least float64, name string, ok bool) {
	type value struct {
		median float64
		name   string
	}
	var values []value
	for _, o := range r.besides(c) {
		if s, ok := o.summary(metric); ok && o.System != Ours && o.System != WebFloor {
			values = append(values, value{s.median, o.System})
		}
	}
	if len(values) == 0 {
		return 0, "", false
	}
	best := slices.MinFunc(values, func(a, b value) int { return cmp.Compare(a.median, b.median) })
	return best.median, best.name, true
}
