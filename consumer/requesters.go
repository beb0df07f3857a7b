package consumer

// requesters finds held events by whoever waits for them, of those whose requester takes the body in chunks and can hang up. To find them,
// and to forget one, costs the same however many are held. Its zero value is ready; the table's lock guards it.
type requesters map[requester][]*held

// requester is what a requester that hangs up says of itself.
type requester struct{ owner, worker, replyTo string }

func requesterOf(h *held) requester { return requester{h.event.Owner, h.event.Worker, h.event.ReplyTo} }

// add notes a held event that has a Requester.
func (r requesters) add(h *held) {
	who := requesterOf(h)
	h.nth = len(r[who])
	r[who] = append(r[who], h)
}

// remove forgets one.
func (r requesters) remove(h *held) {
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

// hangUp takes out the events of a requester, so that each is found once.
func (t *table) hangUp(owner, worker string, replyTo []byte) []*held {
	t.mu.Lock()
	defer t.mu.Unlock()
	who := requester{owner, worker, string(replyTo)}
	list := t.requesters[who]
	delete(t.requesters, who)
	return list
}
