package store

import "time"

// Check returns an error that wraps [ErrInvalid] if the command is invalid. Every store
// calls Check first.
func (c *Command) Check(s *Stamp) error {
	if err := s.check(); err != nil {
		return err
	}
	switch c.Op {
	case Pause, Resume:
		if len(c.Items) != 0 {
			return invalid("Pause or Resume with items")
		}
		return nil
	case Schedule, Reschedule, Cancel, Requeue, Purge, Import, SetLimit:
	default:
		return invalid("there is no Op of %d", c.Op)
	}
	if n := len(c.Items); n < 1 || n > MaxBatch {
		return invalid("%d items, not from 1 to %d", n, MaxBatch)
	}
	if c.Keep > KeepSame || c.Keep != KeepNone && c.Op != Schedule {
		return invalid("there is no Keep of %d, or it is not for this command", c.Keep)
	}
	for i := range c.Items {
		if err := c.Items[i].check(c.Op); err != nil {
			return err
		}
	}
	return nil
}

func (x *Item) check(op Op) error {
	if op == SetLimit {
		return x.checkLimit()
	}
	if err := checkID(x.ID); err != nil {
		return err
	}
	timed := op == Schedule || op == Reschedule || op == Requeue
	if timed && !x.When.inRange() || !timed && !x.When.IsZero() {
		return invalid("task %q: the time %v is out of range, or is not for this command", x.ID, x.When)
	}
	if n := len(x.Generation); n > 0 && (n != GenerationSize || op != Reschedule && op != Requeue) {
		return invalid("task %q: a generation of %d bytes, not of %d, or it is not for this command", x.ID, n, GenerationSize)
	}
	switch {
	case (op == Import) != (x.Entry != nil):
		return invalid("task %q: there is no entry, or the command takes none", x.ID)
	case op == Import:
		return x.Entry.check(x.ID)
	case op == Schedule && IsSingle(x.ID):
		return invalid("the key %q contains a NUL", x.ID)
	case op == Schedule:
		return x.Task.check(x.ID)
	}
	return nil
}

// maxTried is the maximum of Attempts, Crashes and Runs of an imported entry. Later
// attempts add to them, and stores count with 31 bits.
const maxTried = 1 << 30

// check validates an imported entry.
func (e *Entry) check(id string) error {
	if err := e.Task.check(id); err != nil {
		return err
	}
	inRange := func(t Time) bool { return t >= 0 && t <= Farthest }
	isCount := func(n int) bool { return n >= 0 && n <= maxTried }
	switch {
	case e.State < Pending || e.State > Past:
		return invalid("task %q: there is no State of %d", id, e.State)
	case !inRange(e.At) || !inRange(e.Due) || !inRange(e.Next):
		return invalid("task %q: a time is out of range", id)
	case !isCount(e.Attempts) || !isCount(e.Crashes) || !isCount(e.Runs) || len(e.Failures) > MaxFailures:
		return invalid("task %q: what was tried is out of range", id)
	}
	if e.Stopping && !e.Following {
		return invalid("task %q: it was cancelled while it ran, and is gone with its attempt", id)
	}
	if e.NextTask != nil {
		if !e.Following || e.State != Running {
			return invalid("task %q: there is a NextTask, but the task is not Running and Following", id)
		}
		if err := e.NextTask.check(id); err != nil {
			return err
		}
	}
	for _, f := range e.Failures {
		if len(f.Text) > MaxText || !isCount(f.Attempt) || !inRange(f.Time) {
			return invalid("task %q: a failure is out of range", id)
		}
	}
	return nil
}

func (t *Task) check(id string) error {
	switch {
	case t.ID != id:
		return invalid("the ids %q and %q of one item differ", id, t.ID)
	case t.Handler == "" || len(t.Handler) > MaxID:
		return invalid("task %q: the handler's name has %d bytes, not from 1 to %d", t.ID, len(t.Handler), MaxID)
	case len(t.Schedule) > MaxID:
		return invalid("task %q: the schedule's name has %d bytes, more than %d", t.ID, len(t.Schedule), MaxID)
	case len(t.Record) > MaxRecord:
		return invalid("task %q: the record has %d bytes, more than %d", t.ID, len(t.Record), MaxRecord)
	}
	return nil
}

// Check returns an error that wraps [ErrInvalid] if the round is invalid. Every store
// calls Check first.
func (r *Round) Check(s *Stamp) error {
	if err := s.check(); err != nil {
		return err
	}
	switch {
	case len(r.Reports) > MaxBatch || len(r.Extend) > MaxBatch:
		return invalid("%d reports and %d extensions, more than %d", len(r.Reports), len(r.Extend), MaxBatch)
	case r.Lease < time.Microsecond || r.Lease > MaxDelay:
		return invalid("a lease of %v", r.Lease)
	case r.MaxCrashes < 1:
		return invalid("a limit of %d crashes", r.MaxCrashes)
	}
	if err := r.Claim.check(); err != nil {
		return err
	}
	for i := range r.Reports {
		x := &r.Reports[i]
		switch {
		case x.End < Done || x.End > Dropped:
			return invalid("task %q: there is no End of %d", x.ID, x.End)
		case x.End == Retry && x.Next.IsZero():
			return invalid("task %q: a retry without a time", x.ID)
		case IsSingle(x.ID) && !x.Next.IsZero() && (x.End == Done || x.End == Failed || x.End == Dropped):
			return invalid("task %q: a single run does not repeat", x.ID)
		case len(x.Result) > MaxResult || len(x.Result) > 0 && (x.End != Done || !x.Keep):
			return invalid("task %q: the result has %d bytes, more than %d, or of a run that is not kept", x.ID, len(x.Result), MaxResult)
		case !x.Next.IsZero() && !x.Next.inRange() || x.Due < 0 || x.Due > Farthest:
			return invalid("task %q: the time %v or %v is out of range", x.ID, x.Next, x.Due)
		}
	}
	return nil
}

func (s *Stamp) check() error {
	if s.Sender == "" || len(s.Sender) > MaxID || s.Number < 1 || s.Until < 0 {
		return invalid("the stamp %+v", *s)
	}
	return nil
}

// checkID validates a key or the id of a single run.
func checkID(id string) error {
	if key := KeyOf(id); key == "" || len(key) > MaxID || len(id) > len(key)+1+20 {
		return invalid("the id %.80q has no key, or too long a one", id)
	}
	return nil
}

// CheckList returns an error that wraps [ErrInvalid] if the filter or the limit is
// invalid.
func CheckList(f *Filter, limit int) error {
	if f.State > Past || limit < 1 || limit > MaxPage {
		return invalid("a list of %v with a limit of %d", f.State, limit)
	}
	return nil
}
