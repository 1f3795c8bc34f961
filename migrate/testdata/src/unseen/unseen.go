package unseen

import "time"

type conn struct {
	idle *time.Timer
	wake *time.Timer
}

func (c *conn) start() {
	c.idle = time.AfterFunc(1, nil) // want `time.AfterFunc stays: idle may be used there, in a file that the analysis does not see`
	c.wake = time.AfterFunc(1, nil) // want `can be`
}
