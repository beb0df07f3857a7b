package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/pinwheel-run/pinwheel/events"
	"github.com/pinwheel-run/pinwheel/loadtest/machine"
)

const (
	// bridgeBatch is how many messages the bridge takes at once, and bridgeAhead how many it has published without an
	// answer.
	bridgeBatch, bridgeAhead = 512, 2048
)

// newBridgeCommand is a program that brings the messages of a consumer to a subject, and does the minimum: it publishes
// each under an id of its own, and acks it when that is stored. Its cost is the floor of that of a source.
func newBridgeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "bridge", Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			nc, err := nats.Connect(os.Getenv("NATS_URL"), machine.Patient)
			if err != nil {
				return err
			}
			defer nc.Close()
			js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(bridgeAhead))
			if err != nil {
				return err
			}
			cons, err := js.Consumer(ctx, os.Getenv("STREAM"), os.Getenv("CONSUMER"))
			if err != nil {
				return err
			}
			stored := make(chan passed, bridgeAhead)
			var acks sync.WaitGroup
			acks.Go(func() {
				for p := range stored {
					p.ack()
				}
			})
			running, err := cons.Consume(func(m jetstream.Msg) {
				answer, err := pass(js, m, os.Getenv("SUBJECT"))
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					return
				}
				stored <- passed{m, answer}
			}, jetstream.PullMaxMessages(bridgeBatch), jetstream.PullExpiry(5*time.Second),
				jetstream.PullHeartbeat(500*time.Millisecond))
			if err != nil {
				return err
			}
			<-ctx.Done()
			running.Stop()
			<-running.Closed()
			close(stored)
			acks.Wait()
			return nil
		},
	}
}

// passed is a message whose event was published.
type passed struct {
	m      jetstream.Msg
	answer jetstream.PubAckFuture
}

// ack acks the message when its event is stored.
func (p passed) ack() {
	select {
	case <-p.answer.Ok():
		_ = p.m.Ack() // otherwise it comes again
	case err := <-p.answer.Err():
		fmt.Fprintln(os.Stderr, err)
	}
}

// pass publishes the event of a message.
func pass(js jetstream.JetStream, m jetstream.Msg, subject string) (jetstream.PubAckFuture, error) {
	facts, err := m.Metadata()
	if err != nil {
		return nil, err
	}
	id := facts.Stream + ":" + strconv.FormatUint(facts.Sequence.Stream, 10)
	return js.PublishMsgAsync(&nats.Msg{Subject: subject, Data: m.Data(), Header: nats.Header{
		events.HeaderMsgID: {id}, events.HeaderContentType: {"application/json"}}}, jetstream.WithStallWait(publishPatience))
}
