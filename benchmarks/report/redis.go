package main

// redis is the mode of redisstore's benchmarks, whose raw output, tables and page are in
// their own folder.
const redis = "redis"

// redisLayout returns the tables of redisstore beside asynq. Rows of what is late at p50
// have no best: where most tasks are early that is none.
func redisLayout() []table {
	one := func(workload, params, unit, title string) row {
		return row{key: key{workload, params, unit}, title: title, higher: unit == "tasks/s", plain: unit == "early-%" || unit == "p50-ms"}
	}
	late := func(workload, params string) []row {
		return []row{
			one(workload, params, "p50-ms", "late at p50 (ms)"),
			one(workload, params, "p99-ms", "late at p99 (ms)"),
			one(workload, params, "max-ms", "late at most (ms)"),
		}
	}
	steady := func(params string) []row {
		return append([]row{
			one("Steady", params, "worker-cpu-%", "CPU of the worker (%)"),
			one("Steady", params, "server-cpu-%", "CPU of the server (%)"),
			one("Steady", params, "commands/task", "commands a task"),
		}, late("Steady", params)...)
	}
	return []table{
		{"Scheduling", "For tomorrow. What a script takes is time in which the server serves nobody else.", []row{
			one("Schedule", "by=one/conns=1", "tasks/s", "one caller (tasks/s)"),
			one("Schedule", "by=one/conns=32", "tasks/s", "32 callers (tasks/s)"),
			one("Schedule", "by=batch/conns=4", "tasks/s", "4 callers, in batches (tasks/s)"),
			one("Schedule", "by=one/conns=1", "server-us/task", "one caller, CPU of the server (µs a task)"),
			one("Schedule", "by=one/conns=32", "server-us/task", "32 callers, CPU of the server (µs a task)"),
			one("Schedule", "by=batch/conns=4", "server-us/task", "4 callers, in batches, CPU of the server (µs a task)"),
			one("Schedule", "by=one/conns=32", "script-us/task", "32 callers, in scripts (µs a task)"),
		}},
		{"100,000 due at one moment", "", []row{
			one("Burst", "", "s-handled", "until the last one is handled (s)"),
			one("Burst", "", "s", "until all are reported too (s)"),
			one("Burst", "", "server-us/task", "CPU of the server (µs a task)"),
		}},
		{"20,000 due at random times of ten seconds", "`tickless-exact` is `WithSlack(0)`. What is early counts as late by nothing.", append(late("Lateness", ""),
			one("Lateness", "", "early-%", "early (%)"))},
		{"1,000 due a second", "What is early counts as late by nothing.", steady("rate=1k")},
		{"10,000 due a second", "What is early counts as late by nothing.", steady("rate=10k")},
		{"Memory of Redis", "A task with a body of 205 bytes; `asynq-uuid` leaves the choice of its name to asynq.", []row{
			one("Memory", "", "bytes/task", "a pending task (bytes)"),
		}},
		{"A worker that has nothing to do", "", []row{
			one("Idle", "", "commands/s", "commands a second"),
			one("Idle", "", "worker-cpu-%", "CPU of the worker (%)"),
			one("Idle", "", "server-cpu-%", "CPU of the server (%)"),
		}},
		{"On a cluster of three masters", "With a replica each, all on the same procs. What asynq has of a queue is on one of them.", append([]row{
			one("Cluster", "what=one", "tasks/s", "one caller (tasks/s)"),
			one("Cluster", "what=one-replicated", "tasks/s", "one caller, each task on a replica too (tasks/s)"),
			one("Cluster", "what=batch", "tasks/s", "4 callers, in batches (tasks/s)"),
		}, late("Cluster", "what=lateness")...)},
	}
}
