// Package kafka is the command that puts the load of Kafka's own purgatory test on
// package purgatory, and on time.AfterFunc with a map under a mutex.
package kafka
