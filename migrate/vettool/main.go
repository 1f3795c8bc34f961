// Vettool runs the analyzer of package migrate under go vet, together with vet's
// lostcancel check for contexts of package deadline:
//
//	go build -o /tmp/migrate github.com/tickless/tickless/migrate/vettool
//	go vet -vettool=/tmp/migrate ./...
//
// From Go 1.26 on, go vet -vettool=/tmp/migrate -fix rewrites the files. Vettool sees
// one package at a time; `tickless migrate` sees all packages of a module. After a
// migration, go vet -vettool=/tmp/migrate -lostcancel ./... finds contexts that are
// never canceled.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/tickless/tickless/migrate"
)

func main() { unitchecker.Main(migrate.Analyzer, lostCancel) }
