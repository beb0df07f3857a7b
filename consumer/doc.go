// Package consumer is where events come in from JetStream and where what became of each is
// carried out: it pulls messages, decodes them, hands them to a Dispatcher in batches, keeps
// their leases, and settles them: publishes the reply, acks, retries, writes dead letters,
// gives back, parks. It also runs the call bridge and reads and replays dead letters.
//
// It knows nothing of JavaScript, of threads, or of which event runs next.
//
// # How it fits together
//
// puller.go asks the server for exactly as many messages as the Window has room for (the credit
// scheme of notes "own credit puller"; nats.go's Consume can stall, and a message header can
// stop it). held.go is the list of all events this process answers for. lease.go renews them.
// settle.go is the only place where an Outcome is carried out; acks.go confirms acks in groups.
// ask.go sends any message that the server answers, without a goroutine waiting for each.
// park.go and unpark.go set aside what an owner has no room for, and find it again; overtake.go does
// the former for what waits behind another owner's backlog. pin.go keeps the streams' files few.
//
// Nothing here waits on the network for a single event: every exchange is a message out and a
// callback in.
package consumer
