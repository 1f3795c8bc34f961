// Package deploy tests durable tasks with real processes, on each store: what a deploy does to
// repeating tasks, the night of an operator, and the ordinary day of workers that are killed,
// full or busy. `make day` prints the day's figures.
package deploy
