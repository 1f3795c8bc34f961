// Package record encodes what package durable keeps in a store as bytes, and the entries of a
// store as a file: tasks (task.go), the results of runs (run.go) and exported files (file.go).
// It works on the types of package store, and knows neither clients nor workers.
package record
