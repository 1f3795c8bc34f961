package exported

import "time"

// Others get at the fields that a type promotes, and at what they are handed.

type base struct {
	T *time.Timer
	t *time.Timer
}

type Outer struct {
	base
	unseen hiddenPart
}

type hiddenPart struct{ T *time.Timer }

func (o *Outer) start() {
	o.T = time.AfterFunc(1, nil)        // want `stays: T is exported: another package may use it`
	o.t = time.AfterFunc(1, nil)        // want `can be`
	o.unseen.T = time.AfterFunc(1, nil) // want `can be`
}

type handed struct{ own *time.Timer }

func New() *handed { return &handed{own: time.AfterFunc(1, nil)} } // want `can be`

func (h *handed) Started() *time.Timer { return time.AfterFunc(1, nil) } // want `stays: Started is exported: another package may use it`

func (h *handed) begun() *time.Timer { return time.AfterFunc(1, nil) } // want `can be`

type handedList []*time.Timer

func List() handedList { return handedList{time.AfterFunc(1, nil)} } // want `stays: List is exported: another package may use it`

type deep struct{ Deep *time.Timer }

type generic[V any] struct{ V V }

var Deeper = map[string][]generic[func() *deep]{}

func makeDeep() *deep { return &deep{time.AfterFunc(1, nil)} } // want `stays: Deep is exported: another package may use it`

type waker interface{ Wake() *time.Timer }

type Wakers interface{ waker }

type clock struct{}

func (clock) Wake() *time.Timer { return time.AfterFunc(1, nil) } // want `time.AfterFunc can be timer.AfterFunc`

type kept struct{ Kept *time.Timer }

type Keeper struct{ kept kept }

func (k *Keeper) keep() { k.kept.Kept = time.AfterFunc(1, nil) } // want `can be`

type promoted struct{ *time.Timer }

type Promoter struct{ promoted }

func NewPromoter() Promoter { return Promoter{promoted{time.AfterFunc(1, nil)}} } // want `stays: embedded`
