// Package machine implements the states of a shard's tasks, for stores that are written
// in Go. Each store passes its own [Index]. The package has no clock, no lock, no I/O and
// no state of its own. It is public for stores in other modules: sqlitestore and pgstore
// use it, and so can a new store.
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
//	                       │   lease expired        │
//	                       └────────────────────────┘ Requeue, Schedule
//
//	transition                          made by
//	Schedule, Reschedule, Cancel,       a client, with [Change]
//	Requeue, Purge, Import
//	Claim                               a worker that has the task's handler and schedule,
//	                                    when the task is due by the wall clock
//	Done, Retry, Failed, HandBack,      the worker with the token of the latest claim
//	Dropped
//	the lease expired                   the next claim of any worker
//
// A Running task that is scheduled or rescheduled is Following. A Running task that is
// cancelled is Stopping. Both stay Running until the attempt ends.
//
// # Time
//
// Tasks are due by the wall clock. Leases are durations: if the wall clock was set, or the
// computer slept, the next transaction starts all leases again.
//
// # Concurrency
//
// The caller makes each call one transaction of its Index.
package machine
