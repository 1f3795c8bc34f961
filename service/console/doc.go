// Package console is a page that shows the tasks of a durable.Client and changes them. It is
// rendered by the server and works without scripts; a script keeps the overview's numbers
// up to date.
//
// # Usage
//
//	c := console.New(api.New(client))
//	go c.Run(ctx)
//	mux.Handle("/", c)
//
// The package authenticates nobody: package service does.
//
// # Complexity
//
// A page reads at most 10,000 tasks, and mostly 50. Numbers come from the store's counters;
// where there is none, the page counts up to 10,000 and keeps the number for some seconds.
//
// # Concurrency
//
// A bulk command runs in a goroutine of this process, and goes on when the browser leaves.
package console
