package bindings

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/events/lifecycle"
	"github.com/pinwheel-run/pinwheel/events/workers"
	"github.com/pinwheel-run/pinwheel/internal/lib/resources"
)

// BindingCounters is the kind of a counter.
const BindingCounters workers.BindingKind = "counters"

// counters has a stream of counters for each owner. nats-server adds.
type counters struct {
	backend
	streams opened[string]
}

func newCounters(b backend) *counters {
	k := &counters{backend: b}
	k.streams.create = func(ctx context.Context, owner string) (string, error) {
		name := "PINWHEEL_COUNT_" + owner
		r := resources.Reconciler{JS: k.js, Log: k.cfg.Log}
		return "pinwheel.count." + owner + ".", r.Stream(ctx, jetstream.StreamConfig{
			Name: name, Subjects: []string{"pinwheel.count." + owner + ".*"}, AllowMsgCounter: true, AllowDirect: true,
			MaxBytes: k.cfg.KVBytes, Replicas: k.cfg.Replicas, Storage: jetstream.FileStorage,
		})
	}
	return k
}

func (k *counters) method(name string) method {
	if name == "add" {
		return k.add
	}
	return nil
}

// add has the argument n, a whole number. It answers with the sum.
func (k *counters) add(ctx context.Context, c *lifecycle.Call) (lifecycle.Answer, error) {
	if len(c.Texts) != 1 {
		return lifecycle.Answer{}, fmt.Errorf("400 %d arguments, not 1", len(c.Texts))
	}
	n, err := strconv.ParseInt(c.Texts[0], 10, 32)
	if err != nil {
		return lifecycle.Answer{}, errors.New("400 n is a whole number of at most 32 bits")
	}
	base, err := k.streams.of(ctx, c.Owner)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	c.Wrote.Store(true)
	m := nats.NewMsg(base + c.Binding.Value)
	m.Header.Set("Nats-Incr", fmt.Sprintf("%+d", n))
	ack, err := k.js.PublishMsg(ctx, m)
	if err != nil {
		_, err = inWords(err, "kvBytes")
		return lifecycle.Answer{}, err
	}
	return lifecycle.Answer{Texts: []string{ack.Value}}, nil
}
