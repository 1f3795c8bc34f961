// Package requests is the command that runs a load of request timeouts on package timer,
// and then on time.AfterFunc. It measures their cost and checks their guarantees.
//
// A [Plan] is generated once, so that every [Backend] gets the same delays and answers.
//
// The load generator allocates nothing during a run. Its CPU time is part of every
// backend's figures.
package requests
