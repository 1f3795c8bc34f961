// Vettool runs the analyzer of package migrate under go vet.
//
//	go build -o /tmp/migrate github.com/tickless/tickless/migrate/vettool
//	go vet -vettool=/tmp/migrate ./...               # report
//	go vet -vettool=/tmp/migrate -fix ./...          # rewrite; needs Go 1.26
//	go vet -vettool=/tmp/migrate -lostcancel ./...   # find contexts of package deadline
//	                                                 # that are never canceled
//
// It decides as `tickless migrate` does.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/tickless/tickless/migrate"
)

func main() { unitchecker.Main(migrate.Analyzer, lostCancel) }
