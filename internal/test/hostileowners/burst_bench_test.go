package hostileowners

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/internal/test/natstest"
)

const (
	// burstOwners owners store burstEvents events each, all at once.
	burstOwners, burstEvents = 40, 300
	// burstPause is the time between two events of the owner whose waiting time is measured.
	burstPause = 5 * time.Millisecond
)

var burstMeasured = flag.Int("burst-measured", 200, "BenchmarkBurst: number of events whose waiting time is measured")

// BenchmarkBurst measures how long stored events of one owner wait for their replies while 40 others store 300 events
// each that nats.go cannot write again. "bare" is the floor: nats.go alone takes the events of the same consumers,
// replies, and acks, with no process of Pinwheel and without dead letters.
//
//	go test -run xxx -bench Burst -benchtime 1x -count 3 ./internal/test/hostileowners -burst-measured 3000
func BenchmarkBurst(b *testing.B) {
	for _, name := range []string{"bare", "fleet"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				f := openFleet(b)
				f.deploy("beta", "echo", echoCode, "")
				call(b, f.as("beta"), events.Task, "beta", "echo", []byte("1"))
				if name == "bare" {
					f.processes[0].Kill()
					takeBare(b, f)
				}
				report(b, "alone", waits(b, f, nil))
				report(b, "burst", waits(b, f, unwritableBurst()))
			}
		})
	}
}

func unwritableBurst() (list []natstest.Raw) {
	for i := range burstEvents {
		for owner := range burstOwners {
			list = append(list, natstest.Raw{Subject: subjects.Event(events.Task, fmt.Sprint("nobody", owner), "none"),
				Header: "NATS/1.0\r\na/b: c\r\n\r\n", Body: strconv.Itoa(i)})
		}
	}
	return list
}

// takeBare takes the events of all lanes with nats.go, and replies to them.
func takeBare(b *testing.B, f *fleet) {
	nc := f.as("fleet")
	js, err := jetstream.New(nc)
	require.NoError(b, err)
	for lane := range events.Lanes {
		c, err := js.Consumer(b.Context(), events.StreamEvents, fmt.Sprint("lane-", lane))
		require.NoError(b, err)
		taking, err := c.Consume(func(m jetstream.Msg) {
			if to := m.Headers().Get(events.HeaderReplyTo); to != "" {
				_ = nc.Publish(to, m.Data())
			}
			_ = m.Ack()
		})
		require.NoError(b, err)
		b.Cleanup(taking.Stop)
	}
}

// waits publishes events of beta, and the burst after the first of them. It returns how long each waited for its reply.
func waits(b *testing.B, f *fleet, burst []natstest.Raw) []time.Duration {
	beta, inbox := f.as("beta"), "_INBOX.beta."+strconv.Itoa(len(burst))
	sent, waited := make([]time.Time, *burstMeasured), make([]time.Duration, *burstMeasured)
	all := make(chan struct{}, *burstMeasured)
	sub, err := beta.Subscribe(inbox+".*", func(m *nats.Msg) {
		i, err := strconv.Atoi(strings.TrimPrefix(m.Subject, inbox+"."))
		if err == nil && waited[i] == 0 {
			waited[i] = time.Since(sent[i])
			all <- struct{}{}
		}
	})
	require.NoError(b, err)
	require.NoError(b, beta.Flush())
	tick := time.NewTicker(burstPause)
	defer tick.Stop()
	for i := range *burstMeasured {
		<-tick.C
		if i == *burstMeasured/10 && burst != nil {
			go natstest.PublishAllRaw(b, strings.Replace(f.url, "://", "://fleet:fleet-secret@", 1), burst)
		}
		sent[i] = time.Now()
		require.NoError(b, beta.PublishMsg(&nats.Msg{Subject: subjects.Event(events.Task, "beta", "echo"), Data: []byte("1"),
			Header: nats.Header{events.HeaderReplyTo: {inbox + "." + strconv.Itoa(i)}}}))
	}
	for range *burstMeasured {
		<-all
	}
	require.NoError(b, sub.Unsubscribe())
	return waited
}

func report(b *testing.B, what string, waited []time.Duration) {
	slices.Sort(waited)
	for name, d := range map[string]time.Duration{
		"p50": waited[len(waited)/2], "p99": waited[len(waited)*99/100], "most": waited[len(waited)-1],
	} {
		b.ReportMetric(float64(d.Microseconds())/1000, what+"-"+name+"-ms")
	}
}
