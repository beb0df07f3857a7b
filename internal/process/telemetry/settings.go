package telemetry

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Settings say what is sent. The zero Settings send nothing. Where to, and how, the exporters read in the environment.
type Settings struct {
	Traces, Logs, Metrics bool

	sampler sdktrace.Sampler
}

// Any reports whether something is sent.
func (s Settings) Any() bool { return s.Traces || s.Logs || s.Metrics }

// Read reads the OTEL_* variables. A signal is sent when its exporter is otlp, or when there is an endpoint for it. The
// error names each variable that is wrong, and what is allowed.
func Read(getenv func(string) string) (s Settings, err error) {
	if disabled := getenv("OTEL_SDK_DISABLED"); strings.EqualFold(disabled, "true") {
		return Settings{}, nil
	}
	var errs []error
	for _, signal := range []struct {
		name string
		on   *bool
	}{{"TRACES", &s.Traces}, {"LOGS", &s.Logs}, {"METRICS", &s.Metrics}} {
		*signal.on, err = readSignal(getenv, signal.name)
		errs = append(errs, err)
	}
	s.sampler, err = readSampler(getenv)
	errs = append(errs, err)
	return s, errors.Join(errs...)
}

// readSignal reads whether a signal is sent.
func readSignal(getenv func(string) string, signal string) (on bool, err error) {
	exporter := "OTEL_" + signal + "_EXPORTER"
	first := func(what string) (name, value string) {
		name = "OTEL_EXPORTER_OTLP_" + signal + "_" + what
		if value = getenv(name); value == "" {
			name = "OTEL_EXPORTER_OTLP_" + what
			value = getenv(name)
		}
		return name, value
	}
	name, endpoint := first("ENDPOINT")
	switch value := getenv(exporter); value {
	case "none":
		return false, nil
	case "":
		if endpoint == "" {
			return false, nil
		}
	case "otlp":
	default:
		return false, fmt.Errorf("%s is %q: it is otlp or none", exporter, value)
	}
	if u, err := url.Parse(endpoint); endpoint != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" ||
		u.Host == "") {
		return false, fmt.Errorf("%s is %q: it is a URL like http://collector:4318", name, endpoint)
	}
	if name, protocol := first("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return false, fmt.Errorf("%s is %q: it is http/protobuf, and the port of the collector is usually 4318", name, protocol)
	}
	return true, nil
}

// readSampler reads OTEL_TRACES_SAMPLER.
func readSampler(getenv func(string) string) (sampler sdktrace.Sampler, err error) {
	const variable, argument = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	name := strings.TrimPrefix(getenv(variable), "parentbased_")
	ratio := 1.0
	if arg := getenv(argument); arg != "" && name == "traceidratio" {
		if ratio, err = strconv.ParseFloat(arg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
			return nil, fmt.Errorf("%s is %q: it is a number from 0 to 1", argument, arg)
		}
	}
	switch name {
	case "", "always_on":
		sampler = sdktrace.AlwaysSample()
	case "always_off":
		sampler = sdktrace.NeverSample()
	case "traceidratio":
		sampler = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, fmt.Errorf("%s is %q: it is one of always_on, always_off, traceidratio, or one of these after parentbased_", variable, getenv(variable))
	}
	if value := getenv(variable); value != "" && value == name {
		return sampler, nil
	}
	return sdktrace.ParentBased(sampler), nil
}
