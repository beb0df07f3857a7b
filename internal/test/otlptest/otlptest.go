// Package otlptest is a collector for tests: it decodes what exporters send by OTLP over HTTP.
package otlptest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	collectorlogs "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	collectormetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectortrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector has what was sent to it.
type Collector struct {
	URL string

	mu       sync.Mutex
	spans    []Span
	lines    []*logs.LogRecord
	metrics  map[string]*metrics.Metric
	resource map[string]string // of the last request
	wrong    []error
}

// Span is a span with its ids in hexadecimal.
type Span struct {
	*traces.Span
	Trace, ID, Parent string
	Attributes        map[string]string
	SchemaURL         string
}

// Open starts a collector until the test ends, and names it in the environment, for all signals. It makes exporters
// send at once.
func Open(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{metrics: map[string]*metrics.Metric{}}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	t.Cleanup(func() { require.Empty(t, c.wrong) })
	c.URL = srv.URL
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": srv.URL, "OTEL_BSP_SCHEDULE_DELAY": "20", "OTEL_BLRP_SCHEDULE_DELAY": "20",
		"OTEL_METRIC_EXPORT_INTERVAL": "100",
	} {
		t.Setenv(name, value)
	}
	return c
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		err = c.take(r.URL.Path, body)
	}
	if err != nil {
		c.wrong = append(c.wrong, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *Collector) take(path string, body []byte) error {
	switch path {
	case "/v1/traces":
		var all collectortrace.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, r := range all.GetResourceSpans() {
			c.resource = attributes(r.GetResource().GetAttributes())
			for _, s := range r.GetScopeSpans() {
				for _, span := range s.GetSpans() {
					c.spans = append(c.spans, Span{
						Span: span, Trace: hex.EncodeToString(span.GetTraceId()), ID: hex.EncodeToString(span.GetSpanId()),
						Parent:     hex.EncodeToString(span.GetParentSpanId()),
						Attributes: attributes(span.GetAttributes()), SchemaURL: s.GetSchemaUrl(),
					})
				}
			}
		}
	case "/v1/logs":
		var all collectorlogs.ExportLogsServiceRequest
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, r := range all.GetResourceLogs() {
			for _, s := range r.GetScopeLogs() {
				c.lines = append(c.lines, s.GetLogRecords()...)
			}
		}
	case "/v1/metrics":
		var all collectormetrics.ExportMetricsServiceRequest
		if err := proto.Unmarshal(body, &all); err != nil {
			return err
		}
		for _, r := range all.GetResourceMetrics() {
			for _, s := range r.GetScopeMetrics() {
				for _, m := range s.GetMetrics() {
					c.metrics[m.GetName()] = m
				}
			}
		}
	}
	return nil
}

func attributes(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			all[a.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			all[a.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_BoolValue:
			all[a.GetKey()] = strconv.FormatBool(v.BoolValue)
		default:
			all[a.GetKey()] = a.GetValue().String()
		}
	}
	return all
}

// Spans are the spans of now, in the order in which they ended.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Lines are the log lines of now.
func (c *Collector) Lines() []*logs.LogRecord {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]*logs.LogRecord(nil), c.lines...)
}

// Metric is the metric of this name as it was sent last, or nil.
func (c *Collector) Metric(name string) *metrics.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics[name]
}

// Resource is what sent the last spans.
func (c *Collector) Resource() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resource
}
