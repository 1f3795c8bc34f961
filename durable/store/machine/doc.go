// Package machine is the life cycle of a shard's tasks, which all stores in Go share: each runs
// it over an [Index] of its own. It has no clock, no lock and no I/O, and keeps
// nothing between two calls.
//
// # How it works
//
//	           Schedule               Claim
//	(none) ──────────────▶ Pending ──────────▶ Running ──▶ (none)   Done, or cancelled
//	                       ▲  ▲  │ Cancel        │  │
//	                       │  │  └───▶ (none)    │  │ Failed, or too many crashes
//	                       │  └──────────────────┘  ▼
//	                       │   Retry, HandBack,    Dead ──▶ (none)  Purge
//	                       │   the next run, the    │
//	                       │   lease ran out        │
//	                       └────────────────────────┘ Requeue, Schedule
//
//	step                                who makes it
//	Schedule, Reschedule, Cancel,       a client, by [Change]
//	Requeue, Purge, Import
//	Claim                               a worker that knows the task's handler and schedule,
//	                                    when the wall clock shows the task's moment
//	Done, Retry, Failed, HandBack,      the worker that has the token of the latest claim
//	Dropped
//	the lease ran out                   any worker's claim, which looks for such tasks first
//
// A Running task that is scheduled or rescheduled is Following, and one that is cancelled
// is Stopping: both stay Running, and what comes next waits until the attempt ends,
// however it ends.
//
// # Time
//
// Moments follow the wall clock, leases are durations. The first transaction that sees
// that the wall clock was set, or that the machine slept, gives each Running task one full
// lease from then on.
//
// # Concurrency
//
// The caller makes each call one transaction of its Index.
package machine
