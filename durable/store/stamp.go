package store

// A Stamp lets a command have its effect only once. An answer can be lost at any time,
// and the network may deliver a copy of a command long after its sender has continued.
// So a command says who sends it and which of the sender's commands it is. Each shard
// remembers the number and the answer of each sender's last command:
//
//   - The same number again changes nothing and gets the same answer, even if the task
//     has ended since then. (For a repeated claim, see [Claim].)
//   - A lower number is refused with [ErrStale].
//
// So a sender has one command at a time under way in a shard, and numbers its commands
// upwards, from 1. A store forgets a sender one day after its last command, not
// earlier.
type Stamp struct {
	Sender string // from 1 to MaxID bytes
	Number int64
	// Until is a deadline: the store refuses the command after it with [ErrLate]. Zero
	// means none. A command that was carried out in time is still answered after its
	// deadline.
	//
	// Workers set a deadline for each claim. Without it, a claim that arrives late could
	// treat attempts that ended in time as crashed, because their reports arrive after
	// it.
	Until Time
}
