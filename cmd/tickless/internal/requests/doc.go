// Package requests is the command that runs one load of request timeouts on package
// timer and on time.AfterFunc. It measures the cost and checks the timers' guarantees.
//
// A [Plan] is generated once and may run many times: every [Backend] gets the same
// delays, and the same answers at the same times, through the same code.
//
// The generator must not distort the measurement. It allocates nothing during a run:
// delays, answers and result records exist before. Its own CPU time (two clock readings
// and a few loads and stores a request) is part of every backend's figures.
package requests
