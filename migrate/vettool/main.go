// Vettool runs vet's check lostcancel for contexts of package deadline, under go vet.
//
//	go build -o /tmp/lostcancel github.com/tickless/tickless/migrate/vettool
//	go vet -vettool=/tmp/lostcancel ./...   # find contexts that are never canceled
package main

import "golang.org/x/tools/go/analysis/unitchecker"

func main() { unitchecker.Main(lostCancel) }
