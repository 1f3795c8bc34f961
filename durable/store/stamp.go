package store

// A Stamp lets a command take effect only once, even if it is sent several times or
// delivered late. It names the sender, and numbers the sender's commands. Each shard
// remembers the number and the answer of a sender's last command:
//
//   - The same number again changes nothing and gets the same answer. For a repeated
//     claim, see [Claim].
//   - A lower number is refused with [ErrStale].
//
// A sender must wait for each answer of a shard before it sends the next command, and
// number its commands upwards from 1. A store forgets a sender one day after its last
// command, not earlier.
type Stamp struct {
	Sender string // from 1 to MaxID bytes
	Number int64
	// Until is a deadline: the store refuses a later command with [ErrLate]. Zero means
	// none. A repeated command that was carried out in time is still answered.
	//
	// Workers set a deadline for each claim. A claim ends expired leases. If it were
	// delivered late, it could end attempts whose reports are still under way.
	Until Time
}
