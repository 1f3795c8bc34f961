package unseen

import "time"

type conn struct {
	idle *time.Timer
	wake *time.Timer
}

func (c *conn) start() {
	c.idle = time.AfterFunc(1, nil) // want `time.AfterFunc is left: idle may be used there, in a file that was not looked at`
	c.wake = time.AfterFunc(1, nil) // want `can be`
}
