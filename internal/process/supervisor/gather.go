package supervisor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Gather makes a Supervisor a prometheus.Gatherer. It returns the metrics of all children, each with the label process.
// The metrics of a child that does not answer are missing; pinwheel_process_up shows that.
func (s *Supervisor) Gather() ([]*dto.MetricFamily, error) {
	var all prometheus.Gatherers
	for i, a := range s.Ask(context.Background(), "/metrics", string(expfmt.NewFormat(expfmt.TypeProtoDelim))) {
		if a.Err != nil {
			s.cfg.Log.Debug().Err(a.Err).Int("process", i).Msg("no metrics")
			continue
		}
		all = append(all,
			prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families(a, strconv.Itoa(i)) }))
	}
	return all.Gather()
}

// families reads a child's metrics and adds the label.
func families(a Answer, process string) ([]*dto.MetricFamily, error) {
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("metrics of process %s: status %d", process, a.Status)
	}
	decoder := expfmt.NewDecoder(bytes.NewReader(a.Body), expfmt.ResponseFormat(a.Header))
	name := "process"
	var list []*dto.MetricFamily
	for {
		f := &dto.MetricFamily{}
		if err := decoder.Decode(f); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return list, fmt.Errorf("metrics of process %s: %w", process, err)
		}
		for _, m := range f.GetMetric() {
			m.Label = append(m.Label, &dto.LabelPair{Name: &name, Value: &process})
			slices.SortFunc(m.Label, func(x, y *dto.LabelPair) int { return cmp.Compare(x.GetName(), y.GetName()) })
		}
		list = append(list, f)
	}
}
