// Package machine implements the life of a shard's tasks for all stores that are
// written in Go. Each store runs it over its own [Index]. The package has no clock, no
// lock and no I/O, and keeps nothing between calls.
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
// A Running task that is scheduled or rescheduled is Following, and one that is
// cancelled is Stopping. Both stay Running until the attempt ends, whatever its result.
//
// # Time
//
// The times of tasks follow the wall clock; leases are durations. When a transaction
// sees that the wall clock was set, or that the machine slept, it gives each Running
// task one full lease from then on.
//
// # Concurrency
//
// The caller makes each call one transaction of its Index.
package machine
