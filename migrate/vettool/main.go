// Vettool is the analyzer of package migrate for go vet, with vet's own lostcancel for
// contexts of package deadline:
//
//	go build -o /tmp/migrate github.com/tickless/tickless/migrate/vettool
//	go vet -vettool=/tmp/migrate ./...
//
// From Go 1.26 on, go vet -vettool=/tmp/migrate -fix rewrites the files. It looks at
// one package at a time; `tickless migrate` looks at all of a module's. After moving over,
// go vet -vettool=/tmp/migrate -lostcancel ./... looks for contexts that nobody cancels.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/tickless/tickless/migrate"
)

func main() { unitchecker.Main(migrate.Analyzer, lostCancel) }
