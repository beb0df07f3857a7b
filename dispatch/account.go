package dispatch

import "time"

// account is the CPU time that an owner may start. d.mu must be held for all methods.
type account struct {
	quantum time.Duration // CPU time that it gets in each round
	credit  time.Duration // CPU time it may still start in its round; below zero is debt
	seen    int64         // the round up to which credit was granted
}

// setWeight sets how many quanta the owner gets in each round.
func (a *account) setWeight(weight int) {
	a.quantum = quantum * time.Duration(max(1, weight))
	a.credit = min(a.credit, a.quantum)
}

func (a *account) weight() int { return int(a.quantum / quantum) }

// open gives a new owner its first credit, in a fair queue that is in that round.
func (a *account) open(round int64) { a.credit, a.seen = a.quantum, round }

// grant gives the credit for the rounds that began since the last grant.
func (a *account) grant(round int64) {
	if rounds := round - a.seen; rounds > 0 {
		// Compared by division, because many rounds times quantum may overflow.
		if rounds > int64((a.quantum-a.credit)/a.quantum) {
			a.credit = a.quantum
		} else {
			a.credit += time.Duration(rounds) * a.quantum
		}
		a.seen = round
	}
}

// change goes on with the rounds of another fair queue: those of two are independent.
func (a *account) change(round int64) { a.seen = round }

func (a *account) charge(cpu time.Duration) { a.credit -= cpu }

// correct replaces what was charged for an attempt by what it took.
func (a *account) correct(charged, took time.Duration) {
	a.credit = min(a.credit+charged-took, a.quantum)
}

// class decides which threads run an owner's events.
type class uint8

const (
	light   class = iota // within its share, or the only owner
	heavy                // beyond its share while other owners have events
	classes              // how many there are
)

// usage is what an owner took of the CPU. d.mu must be held for all methods.
type usage struct {
	window int64         // of shares, in which spent was
	spent  time.Duration // CPU time
}

// add counts CPU time in a window.
func (u *usage) add(cpu time.Duration, window int64) {
	if u.window != window {
		u.window, u.spent = window, 0
	}
	u.spent += cpu
}

// in is the CPU time in the current window.
func (u *usage) in(window int64) time.Duration {
	if u.window != window {
		return 0
	}
	return u.spent
}
