// Package prom exports the metrics of Schedulers, and of the packages built on them, to
// Prometheus.
//
// # Usage
//
//	prometheus.MustRegister(prom.New(observe.Schedulers()))
//	http.Handle("/metrics", promhttp.Handler())
//
// The example exports every open Scheduler that has a name (timer.WithName). Package
// observe makes Sources of other things. The file observe/metrics.csv lists the metrics.
//
// A Grafana dashboard and alert rules for Prometheus are beside the code: dashboard.json
// and alerts.yml. They work with classic and native histograms. Prometheus gets either,
// as its configuration asks.
//
// # Concurrency
//
// Several scrapes may run at once. A Collector starts no goroutine, and costs nothing
// until Prometheus scrapes.
//
// # Complexity
//
// A scrape is O(shards) for each Scheduler, however many timers are pending.
package prom
