// Package hashedwheel is a hashed timing wheel with rounds and a fixed tick, as
// Netty's HashedWheelTimer and go-zero's TimingWheel are: the other baseline. A
// timer stands in the slot of its deadline modulo the wheel's size; every tick
// the slot whose turn it is is gone through, and what has more rounds to wait
// stays.
//
// It does what Netty's does where users depend on it: a maximum of pending
// timers, beyond which starting fails; and what was pending when the wheel is
// stopped is handed back. It differs where Netty queues: starting and stopping
// take the one mutex and are done when they return. (Netty hands both to its
// thread, which carries them out at the next tick.) It is never early.
//
// Callbacks run on the one goroutine, outside the mutex, as Netty's do by
// default; one that blocks delays the others. The wheel ticks whether or not
// anything is pending.
package hashedwheel
