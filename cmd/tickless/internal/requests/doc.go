// Package requests is the command that runs a load of request timeouts on package timer,
// and then on time.AfterFunc. It measures their cost and checks their guarantees.
//
// A [Plan] is a load that is generated once and may run many times. So every [Backend]
// gets the same delays, and the same answers at the same times.
//
// The load generator must not distort the measurement, so it allocates nothing during a
// run. Its CPU time is part of every backend's figures. It reads the clock twice per
// request.
package requests
