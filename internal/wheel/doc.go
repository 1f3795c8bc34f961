// Package wheel is the wheel of package timingwheel, with what a Scheduler needs besides.
// Package timingwheel says how it works and what it guarantees.
//
// A Scheduler has many wheels, and one queue outside for the buckets of all of them:
// [WithQueue] has the wheel offer its buckets there, [Wheel.Expire] takes a bucket whose
// time has come, [Wheel.Drain] works through what it holds in pieces, so that no lock is
// held for long, and [Wheel.Discard] takes back one that has become empty. [WithPhase]
// spreads what the wheels send down. Entries have tags, and can be counted, sampled and
// swept without a call for each of them.
package wheel
