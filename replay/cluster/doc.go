// Package cluster lets several workers send one run: a coordinator plans, keeps
// the clocks together, notices who is lost, and assembles one run directory.
//
// They talk over NATS, in requests of workers that the coordinator answers: hello
// (who I am; the answer is the plan), beat (how far I am; the answer is what to do)
// and rows (a piece of a result file). A request that is lost is sent again, and
// says nothing new the second time; so a cut of the network costs messages and
// nothing else. Sending does not wait for the bus: what is due when is in the plan,
// and the plan's clock is the worker's own, set against the coordinator's before
// the start.
package cluster
