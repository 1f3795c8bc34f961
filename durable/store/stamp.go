package store

// A Stamp lets a command take effect only once, even if it is sent several times. Each
// shard remembers the Number and the answer of a Sender's last command:
//
//   - A command with the same Number changes nothing, and gets the same answer. For a
//     repeated claim, see [Claim].
//   - A command with a lower Number is refused with [ErrStale].
//
// A sender must wait for each answer of a shard before it sends the next command, and
// number its commands upwards from 1. A store forgets a sender at the earliest one day
// after its last command.
type Stamp struct {
	Sender string // from 1 to MaxID bytes
	Number int64
	// Until is a deadline: if the command arrives later, the store refuses it with
	// [ErrLate], unless it is a repeated command that was carried out in time. A command
	// that was refused is refused again, even if the clock was set back. Zero means no
	// deadline.
	//
	// Workers set a deadline for each claim: a late claim could end attempts whose
	// reports are still under way.
	Until Time
}
