// Package storetest checks whether a store keeps what package store promises.
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
// There is a test for each promise, which names it, and a model: random commands, some
// of them repeated, overtaken or too late, against a plain map, where every answer and
// all that is stored are compared after each step. The model prints its seed, and
// TICKLESS_SEED repeats it. TICKLESS_MODEL sets the number of steps.
//
// # When not to use it
//
// What a store does when its process, its disk or its server fails is for tests of its
// own.
package storetest
