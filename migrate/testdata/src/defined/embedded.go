package defined

import (
	"context"
	"time"
)

type op struct {
	context.Context
	*time.Timer
}

type base struct{ context.Context }

type hidden struct {
	*time.Timer
	base
}

type plain struct{ *time.Timer }

func embed(ctx context.Context) {
	o := op{ctx, time.AfterFunc(1, nil)} // want `is left: embedded beside another method Deadline`
	o.Stop()
	h := hidden{time.AfterFunc(1, nil), base{ctx}} // want `is left: embedded beside another method Deadline`
	h.Stop()
	p := plain{time.AfterFunc(1, nil)} // want `can be`
	p.Stop()
}
