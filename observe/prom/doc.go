// Package prom exports the metrics of Schedulers, and of the packages built on them, to
// Prometheus.
//
// # Usage
//
//	prometheus.MustRegister(prom.New(observe.Schedulers()))
//	http.Handle("/metrics", promhttp.Handler())
//
// The Collector exports every open Scheduler that has a name, which timer.WithName
// gives. Package observe makes Sources of other things. observe/metrics.csv lists the
// metrics.
//
// Each histogram is exported as a classic histogram, and also as a native one if
// Prometheus scrapes native histograms.
//
// A Grafana dashboard and alert rules for Prometheus are beside the code:
// dashboard.json and alerts.yml. They work with both types of histogram.
//
// # Concurrency
//
// Any number of scrapes may run at once. A Collector starts no goroutine and costs
// nothing until Prometheus scrapes.
//
// # Complexity
//
// A scrape is O(shards) for each Scheduler, however many timers are pending.
package prom
