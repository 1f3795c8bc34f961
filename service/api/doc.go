// Package api is an http.Handler for scheduling calls of URLs over a durable.Client: JSON,
// as openapi.json describes it, which it serves too.
//
// # Usage
//
//	mux.Handle("/v1/", api.New(client))
//
// The package authenticates nobody: package service does.
//
// # Concurrency
//
// An API keeps no state beside the client's. Any number of APIs, in any number of
// processes, may serve one store.
package api
