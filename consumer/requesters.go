package consumer

// requesters finds events in flight by the requester that waits for them. It has only events whose requester takes the
// body in chunks and can hang up. Finding and removing take the same time for any number of events. Its zero value is
// ready to use. inflight's lock guards it.
type requesters map[requester][]*entry

// requester identifies a requester, by what it sends when it hangs up.
type requester struct{ owner, worker, replyTo string }

func requesterOf(h *entry) requester {
	return requester{h.event.Owner, h.event.Worker, h.event.ReplyTo}
}

// add notes an event that has a Requester.
func (r requesters) add(h *entry) {
	who := requesterOf(h)
	h.nth = len(r[who])
	r[who] = append(r[who], h)
}

// remove forgets an event.
func (r requesters) remove(h *entry) {
	who := requesterOf(h)
	list := r[who]
	if h.nth >= len(list) || list[h.nth] != h { // its requester has hung up
		return
	}
	last := len(list) - 1
	if last == 0 {
		delete(r, who)
		return
	}
	list[h.nth] = list[last]
	list[h.nth].nth = h.nth
	list[last] = nil
	r[who] = list[:last]
}

// hangUp notifies each event of a requester, once, that the requester is gone.
func (t *inflight) hangUp(owner, worker string, replyTo []byte) {
	for _, h := range t.takeRequester(owner, worker, replyTo) {
		h.event.Requester.Gone()
	}
}

// takeRequester removes and returns the events of a requester, so that each is found once.
func (t *inflight) takeRequester(owner, worker string, replyTo []byte) []*entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	who := requester{owner, worker, string(replyTo)}
	list := t.requesters[who]
	delete(t.requesters, who)
	return list
}
