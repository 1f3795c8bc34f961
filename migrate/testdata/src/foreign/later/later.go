package later

import "time"

type Later interface {
	Later(time.Duration) *time.Timer
}
