package defined

import (
	"context"
	"time"
)

type plain struct{ *time.Timer }

// hidden has the method Deadline of context.Context, which that of timer.Timer would hide.
type hidden struct {
	*time.Timer
	base
}

type base struct{ context.Context }

var unnamed struct {
	context.Context
	*time.Timer
}

func embed(ctx context.Context) {
	p := plain{time.AfterFunc(1, nil)} // want `stays: embedded: timer.Timer has a method Deadline`
	p.Stop()
	h := hidden{time.AfterFunc(1, nil), base{ctx}} // want `stays: embedded`
	h.Deadline()
	h.Stop()
	unnamed.Context = ctx
	unnamed.Timer = time.AfterFunc(1, nil) // want `stays: embedded`
	unnamed.Deadline()
	unnamed.Stop()
}
