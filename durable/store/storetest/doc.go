// Package storetest tests whether a store meets the guarantees of package store.
//
// # Usage
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Subject {
//			clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
//			return storetest.Subject{
//				Store:   memstore.New(memstore.WithClock(clk)),
//				Advance: clk.Advance,
//			}
//		})
//	}
//
// # Guarantees
//
// Each guarantee has a test with its name. A model, a plain map, judges most of them: after
// each step it compares every answer and all stored data. Many are histories of one task, a
// line each, in histories.go.
//
// A model test sends random commands, some of them repeated, out of order or too late.
// TICKLESS_SEED sets its seed, which the test prints. TICKLESS_MODEL sets the number of steps.
//
// # When not to use it
//
// The package does not test what a store does when its process, its disk or its server
// fails. Each store needs its own tests for that.
package storetest
