// Package prom exports the numbers of Schedulers, and of what stands on them, to
// Prometheus.
//
// # Usage
//
//	prometheus.MustRegister(prom.New(observe.Schedulers()))
//	http.Handle("/metrics", promhttp.Handler())
//
// Give a Scheduler a name with timer.WithName, and it is exported for as long as it is
// open. Package observe makes Sources of other things. observe/metrics.csv lists the
// metrics.
//
// Histograms are native ones where Prometheus scrapes these, and classic ones besides.
//
// A dashboard for Grafana and alert rules for Prometheus are beside the code:
// dashboard.json and alerts.yml. They take either kind of histogram.
//
// # Concurrency
//
// Any number of scrapes may run at once. Registering a Collector starts no goroutine,
// and nothing costs anything until Prometheus scrapes.
//
// # Complexity
//
// A scrape is O(shards) for each Scheduler, however many timers are pending.
package prom
