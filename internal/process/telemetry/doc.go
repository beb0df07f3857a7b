// Package telemetry sends traces, log lines of workers and metrics to a collector, by OTLP over HTTP. It is the only
// room that knows OpenTelemetry.
//
//	publisher ─ traceparent ─▶ stored event ─▶ attempt ─┬▶ subrequest ─ traceparent, to listed hosts
//	                                                    ├▶ binding call
//	                                                    ├▶ service call ─▶ attempt of another worker
//	                                                    └▶ send ─ traceparent ─▶ stored event
//
// Names of spans and attributes are those of the semantic conventions of OpenTelemetry in the version of SchemaURL.
// Those of messaging are in development.
//
// What waits to be sent is bounded: when the collector is slow or away, the rest is dropped.
package telemetry
