package main

import (
	"strconv"
	"strings"
	"sync"
)

// The functions for bodies and replies append to b. The content depends on the event's number.

// orderTail follows the number in an order, and makes the order 1 KB.
var orderTail = `,"tenant":"acme","user":{"name":"Ada Lovelace","email":"ada@example.test","roles":["admin","ops"]},"items":[` +
	`{"sku":"sku-0001","qty":1,"price":9.99},{"sku":"sku-0002","qty":2,"price":10.99},{"sku":"sku-0003","qty":3,"price":11.99},` +
	`{"sku":"sku-0004","qty":4,"price":12.99},{"sku":"sku-0005","qty":5,"price":13.99},{"sku":"sku-0006","qty":6,"price":14.99}],` +
	`"ts":"2026-11-21T02:00:00.000Z","active":true,"note":"` + strings.Repeat("n", 600) + `"}`

func order(b []byte, id int) []byte {
	return append(strconv.AppendInt(append(b, `{"id":`...), int64(id), 10), orderTail...)
}

func receipt(b []byte, id int) []byte {
	return append(strconv.AppendInt(append(b, `{"ok":true,"id":`...), int64(id), 10),
		`,"user":"Ada Lovelace","items":6}`...)
}

func taskReceipt(b []byte, id int) []byte {
	return append(receipt(append(b, `{"success":true,"data":`...), id), '}')
}

// batchReply is the answer of the platform to each event that a queue handler handled.
func batchReply(b []byte, _ int) []byte { return append(b, `{"success":true}`...) }

// ioReply is the answer of slowServer, passed on by the worker.
func ioReply(b []byte, id int) []byte {
	return strconv.AppendInt(append(b, "slow "...), int64(id), 10)
}

const (
	// spinRounds are about 5 ms of V8, on the machine of docs/development/performance.md.
	spinRounds = 2_200_000
	spinSeeds  = 16 // few, so that their results can be computed beforehand
)

func spinBody(b []byte, id int) []byte {
	b = strconv.AppendInt(append(b, `{"id":`...), int64(id), 10)
	b = strconv.AppendInt(append(b, `,"seed":`...), int64(id%spinSeeds), 10)
	return append(strconv.AppendInt(append(b, `,"rounds":`...), spinRounds, 10), '}')
}

// spinReplies computes what the worker computes, once for all events.
func spinReplies() func(b []byte, id int) []byte {
	results := sync.OnceValue(func() (x [spinSeeds]uint32) {
		for seed := range x {
			x[seed] = spun(uint32(seed))
		}
		return x
	})
	return func(b []byte, id int) []byte {
		b = append(strconv.AppendInt(b, int64(id), 10), ' ')
		return strconv.AppendUint(b, uint64(results()[id%spinSeeds]), 10)
	}
}

// spun is the xorshift of workers/spin.mjs.
func spun(x uint32) uint32 {
	x |= 1 << 31 // never 0
	for range spinRounds {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
	}
	return x
}

// filled is a text of n bytes that begins with the number and a space.
func filled(b []byte, id, n int) []byte {
	start := len(b)
	b = append(strconv.AppendInt(b, int64(id), 10), ' ')
	for len(b)-start < n {
		b = append(b, "The quick brown fox jumps over the lazy dog. "[:min(45, n-len(b)+start)]...)
	}
	return b
}

// sized does what filled does. It adds nothing if n is 0, because there is no room for a number.
func sized(b []byte, id, n int) []byte {
	if n == 0 {
		return b
	}
	return filled(b, id, n)
}

func kilobyte(b []byte, id int) []byte     { return filled(b, id, 1<<10) }
func sixtyFour(b []byte, id int) []byte    { return filled(b, id, 64<<10) }
func twoMegabytes(b []byte, id int) []byte { return filled(b, id, 2<<20) }
