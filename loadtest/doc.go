// Command loadtest measures Pinwheel from outside: it starts NATS and a fleet as child processes, publishes events as
// any publisher would, checks every reply, and reports events per second, latencies and what they cost.
//
//	go run ./loadtest                                     echo, saturation and open loop
//	go run ./loadtest list                                the scenarios
//	go run ./loadtest --scenario noisy,cold --rounds 5 --json new.json --html new.html
//	go run ./loadtest --compare old.json new.json
//	go run ./loadtest peers                               beside consumers of others
//	go run ./loadtest curves                              over owners, workers, threads, bodies, processes, backlog
//	go run ./loadtest http                                HTTP requests, beside other servers
//	go run ./loadtest sources                             a source, beside publishing to the worker directly
//	go run ./loadtest contention                          pinned isolates and shared ones
//
// It imports the vocabulary and the client for publishers, and no other room: anyone could write it.
package main
