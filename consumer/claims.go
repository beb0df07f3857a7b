package consumer

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/pinwheel-run/pinwheel/internal/assets"
	"github.com/pinwheel-run/pinwheel/internal/guard"
)

const (
	// maxClaims is how many claims of replays of an owner are kept, and claimsSweep after how many new ones of it a process removes those beyond. A
	// publisher may write the header of a replay, and each makes a claim, which stays for attemptsTTL.
	maxClaims, claimsSweep = 10_000, 1000
	// claimOwners is how many owners are counted at most.
	claimOwners = 10_000
)

// claims counts the replays that this process claimed.
type claims struct {
	mu   sync.Mutex
	made map[string]int // by owner, since those beyond maxClaims were removed
}

func claimSubject(owner, id string) string {
	return "$KV." + BucketAttempts + ".replay." + owner + "." + id
}

// add counts a claim, and reports whether it is time to sweep.
func (l *claims) add(owner string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.made == nil || len(l.made) > claimOwners {
		l.made = make(map[string]int)
	}
	if l.made[owner]++; l.made[owner] < claimsSweep {
		return false
	}
	delete(l.made, owner)
	return true
}

// claimMade keeps an owner to as many claims as it may have: the oldest go.
func (c *Consumer) claimMade(owner string) {
	if !c.claims.add(owner) || guard.StoredShares.Off() {
		return
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), storedWait)
		defer cancel()
		stream, err := c.js.Stream(ctx, assets.BucketStream(BucketAttempts))
		if err == nil {
			err = stream.Purge(ctx, jetstream.WithPurgeSubject(claimSubject(owner, ">")), jetstream.WithPurgeKeep(maxClaims))
		}
		if err != nil {
			c.log.Debug().Err(err).Str("owner", owner).Msg("claims of replays stay until their time is over")
		}
	}()
}
