package telemetry

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"golang.org/x/time/rate"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/internal/lib/perowner"
)

// SchemaURL names the version of the semantic conventions.
const SchemaURL = semconv.SchemaURL

// closeTimeout is how long Close waits for what was not sent yet.
const closeTimeout = 3 * time.Second

// Config configures Telemetry.
type Config struct {
	Settings
	Version string // of this binary
	Node    string // this process, among those of the fleet
	// OwnerRate is how many events of one owner are traced in a second, in this process. So neither an owner that has very
	// many nor publishers that want all of them traced take the room of others.
	OwnerRate int
	Gatherer  prometheus.Gatherer // has the metrics
	Log       zerolog.Logger
}

// Telemetry sends what a process does. A nil Telemetry sends nothing.
type Telemetry struct {
	tracer  *tracer // nil: no traces are sent
	logs    *logs   // nil: no lines are sent
	closers []func(context.Context) error
}

// Open begins to send what cfg says. It returns nil when that is nothing. It does not wait for the collector.
func Open(ctx context.Context, cfg Config) (t *Telemetry, err error) {
	if !cfg.Any() {
		return nil, nil
	}
	t = &Telemetry{}
	begun := t // t is nil when there is an error
	defer func() {
		if err != nil {
			begun.Close()
		}
	}()
	reportErrors(cfg.Log)
	res, err := describe(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("telemetry: %w", err)
	}
	for _, signal := range []struct {
		on   bool
		open func(context.Context, Config, *resource.Resource) error
	}{{cfg.Settings.Traces, t.openTraces}, {cfg.Settings.Logs, t.openLogs}, {cfg.Settings.Metrics, t.openMetrics}} {
		if signal.on {
			if err := signal.open(ctx, cfg, res); err != nil {
				return nil, fmt.Errorf("telemetry: %w", err)
			}
		}
	}
	return t, nil
}

// describe says which process sends. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES come first.
func describe(ctx context.Context, cfg Config) (*resource.Resource, error) {
	ours := resource.NewWithAttributes(SchemaURL,
		semconv.ServiceName("pinwheel"), semconv.ServiceVersion(cmp.Or(cfg.Version, "unknown")),
		semconv.ServiceInstanceID(cfg.Node))
	env, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv(), resource.WithSchemaURL(SchemaURL))
	if err != nil {
		return nil, err
	}
	return resource.Merge(ours, env)
}

func (t *Telemetry) openTraces(ctx context.Context, cfg Config, res *resource.Resource) error {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return err
	}
	// The tracer has decided already whether to sample.
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res),
		sdktrace.WithSampler(sdktrace.AlwaysSample()), sdktrace.WithIDGenerator(ids{}))
	t.tracer = newTracer(provider, cfg)
	t.closers = append(t.closers, provider.Shutdown)
	return nil
}

func (t *Telemetry) openLogs(ctx context.Context, _ Config, res *resource.Resource) error {
	exporter, err := otlploghttp.New(ctx)
	if err != nil {
		return err
	}
	provider := sdklog.NewLoggerProvider(sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)),
		sdklog.WithResource(res))
	t.logs = &logs{to: provider.Logger(scope), owners: perowner.Rates{PerSecond: ownerLines, Burst: ownerLines}}
	t.closers = append(t.closers, provider.Shutdown)
	return nil
}

func (t *Telemetry) openMetrics(ctx context.Context, cfg Config, res *resource.Resource) error {
	exporter, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return err
	}
	producer := bridge.NewMetricProducer(bridge.WithGatherer(cfg.Gatherer))
	provider := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter,
		sdkmetric.WithProducer(producer))), sdkmetric.WithResource(res))
	t.closers = append(t.closers, provider.Shutdown)
	return nil
}

// Observe has spans made of the events that observers see.
func (t *Telemetry) Observe(o *lifecycle.Observers) {
	if t != nil && t.tracer != nil {
		o.Add(t.tracer)
	}
}

// Log takes a line of a worker. Any goroutine may call it. It does not wait: when too many lines wait to be sent, the
// oldest are dropped.
func (t *Telemetry) Log(line *events.LogLine) {
	if t != nil && t.logs != nil {
		t.logs.take(line)
	}
}

// Close sends what waits, and ends. After a few seconds it gives up.
func (t *Telemetry) Close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var all sync.WaitGroup
	for _, end := range t.closers {
		all.Go(func() { otel.Handle(end(ctx)) })
	}
	all.Wait()
}

// reportErrors logs what fails in the background: mostly that the collector is away. The library has one handler for
// the program, and calls it for each batch that is lost.
func reportErrors(log zerolog.Logger) {
	seldom := rate.NewLimiter(rate.Every(10*time.Second), 1)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if err != nil && seldom.Allow() {
			log.Warn().Err(err).Msg("telemetry was not sent")
		}
	}))
}
