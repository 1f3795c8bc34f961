// Package requests is the command that puts the same load of request timeouts on
// package timer and on time.AfterFunc, and measures what it costs and whether it
// is kept.
//
// A [Plan] is drawn once and may be run again and again: every [Backend] gets
// the same delays, the same answers at the same moments, through the same code.
//
// The generator must not distort what it measures, so it allocates nothing
// while a run is under way: delays and answers are drawn before, and so are
// the records that a callback writes to. Its own share of the CPU time (two
// clock readings and a few loads and stores a request) is in the figures of
// every backend alike.
package requests
