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

type within struct{ *time.Timer }

type deep struct{ base }

type req struct {
	within
	deep
}

type beside struct{ *time.Timer }

type both struct {
	beside
	base
}

var unnamed struct {
	context.Context
	*time.Timer
}

type inner struct{ *time.Timer }

// outer has a method Deadline that hides those of what it embeds, as before.
type outer struct {
	inner
	deep
}

func (outer) Deadline() {}

func embed(ctx context.Context) {
	o := op{ctx, time.AfterFunc(1, nil)} // want `stays: embedded beside another method Deadline`
	o.Stop()
	h := hidden{time.AfterFunc(1, nil), base{ctx}} // want `stays: embedded beside another method Deadline`
	h.Stop()
	p := plain{time.AfterFunc(1, nil)} // want `can be`
	p.Stop()
	r := req{within{time.AfterFunc(1, nil)}, deep{base{ctx}}} // want `stays: embedded beside another method Deadline`
	r.Deadline()
	r.Stop()
	b := both{beside{time.AfterFunc(1, nil)}, base{ctx}} // want `stays: embedded beside another method Deadline`
	b.Deadline()
	b.Stop()
	unnamed.Context = ctx
	unnamed.Timer = time.AfterFunc(1, nil) // want `stays: embedded beside another method Deadline`
	unnamed.Deadline()
	unnamed.Stop()
	u := outer{inner{time.AfterFunc(1, nil)}, deep{base{ctx}}} // want `can be`
	u.Deadline()
	u.Stop()
}
