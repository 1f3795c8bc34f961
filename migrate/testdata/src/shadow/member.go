package shadow

import (
	"fmt"
	"time"
)

// A field of that name shadows nothing.
type member struct{ timer *time.Timer }

func (m *member) start(d time.Duration) {
	m.timer = time.AfterFunc(d, func() { fmt.Println(d) }) // want `can be timer.AfterFunc \(each object\)`
}
