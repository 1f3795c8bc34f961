package store

// A Stamp makes a command one that has its effect once. An answer can be lost at any
// moment, and what lies between may send a copy of a command on its own, even when its
// sender has long gone on. So a command carries who sends it and which of the sender's
// commands it is, and each shard knows the number and the answer of each sender's last:
//
//   - The same number again changes nothing and gets the same answer, also if the task
//     has come and gone meanwhile. (A claim that is repeated: see [Claim].)
//   - A lower number is refused with [ErrStale].
//
// So a sender has one command at a time under way in a shard, and numbers its commands
// upwards, from 1. A store forgets a sender a day after its last command, and not
// before.
type Stamp struct {
	Sender string // from 1 to MaxID bytes
	Number int64
	// Until is the moment after which the command is not carried out any more, but
	// refused with [ErrLate]; zero if there is none. It does not keep a store from
	// repeating the answer to what was carried out in time. A worker gives one to each
	// claim, since one that comes long after it was sent would take back the leases of
	// what the worker has done meanwhile, and has no answer to its reports on.
	Until Time
}
