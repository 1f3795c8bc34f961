package store

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Check returns an error that wraps [ErrInvalid] if the command is invalid. Every store
// calls Check first.
func (c *Command) Check(s *Stamp) error {
	if err := s.check(); err != nil {
		return err
	}
	switch c.Op {
	case Pause, Resume:
		if len(c.Items) != 0 {
			return invalidf("Pause and Resume take no items")
		}
		return nil
	case Schedule, Reschedule, Cancel, Requeue, Purge, Import, SetLimit, PauseTask, ResumeTask, PauseHandler, ResumeHandler:
	case Sync:
		return c.checkSet()
	default:
		return invalidf("unknown Op %d", c.Op)
	}
	if n := len(c.Items); n < 1 || n > MaxBatch {
		return invalidf("%d items, not from 1 to %d", n, MaxBatch)
	}
	if c.Keep > KeepSame || c.Keep != KeepNone && c.Op != Schedule {
		return invalidf("Keep %d is unknown or not for this command", c.Keep)
	}
	if c.After != nil && (c.Op != Schedule || len(c.Items) != 1) {
		return invalidf("After is only for a Schedule of one item")
	}
	for i := range c.Items {
		if err := c.Items[i].check(c.Op); err != nil {
			return err
		}
	}
	return nil
}

func (c *Command) checkSet() error {
	if len(c.Items) < 1 || len(c.Items) > 1+MaxSet || c.Keep != KeepNone {
		return invalidf("a set of %d tasks, not from 0 to %d, or with a Keep", len(c.Items)-1, MaxSet)
	}
	if set := &c.Items[0]; !IsName(set.ID) || set.Version < 0 {
		return invalidf("the set's name %q must have "+nameRule+", and its version %d must not be negative", Shorten(set.ID), set.Version)
	}
	for i := range c.Items[1:] {
		x := &c.Items[1+i]
		if err := x.check(Schedule); err != nil {
			return err
		}
		if !x.Task.Repeats() || x.Anew && !x.Next || x.Paused || x.IfVersion != 0 {
			return invalidf("task %q of a set does not repeat, is Anew without Next, or has an option that is not for sets", x.ID)
		}
	}
	return nil
}

func (x *Item) check(op Op) error {
	switch op {
	case SetLimit:
		return x.checkLimit()
	case PauseHandler, ResumeHandler:
		return x.checkPause(op)
	}
	if err := checkID(x.ID, op); err != nil {
		return err
	}
	needsTime := op == Schedule || op == Reschedule || op == Requeue
	if needsTime && !x.When.isStorable() || !needsTime && !x.When.IsZero() {
		return invalidf("task %q: the time %v is out of range or not for this command", x.ID, x.When)
	}
	if n := len(x.Generation); n > 0 && (n != GenerationSize || op != Reschedule && op != Requeue) {
		return invalidf("task %q: the generation has %d bytes instead of %d, or is not for this command", x.ID, n, GenerationSize)
	}
	switch {
	case x.IfVersion < 0 || x.IfVersion > 0 && op == Import:
		return invalidf("task %q: the IfVersion %d is negative or not for this command", x.ID, x.IfVersion)
	case x.Paused && op != Schedule:
		return invalidf("task %q: Paused is only for Schedule", x.ID)
	case x.Next && (op != Schedule || x.When.kind != whenAt):
		return invalidf("task %q: Next is only for Schedule at a point in time", x.ID)
	case (op == Import) != (x.Entry != nil):
		return invalidf("task %q: the entry is missing, or is not for this command", x.ID)
	case op == Import:
		return x.Entry.check(x.ID)
	case op == Schedule:
		return x.Task.check(x.ID)
	}
	return nil
}

// maxCount is the maximum of Attempts, Crashes and Runs of an imported entry. Stores
// count with 31 bits, and later attempts must still fit.
const maxCount = 1 << 30

func (e *Entry) check(id string) error {
	if err := e.Task.check(id); err != nil {
		return err
	}
	isValidTime := func(t Time) bool { return t >= 0 && t <= Farthest }
	isValidCount := func(n int) bool { return n >= 0 && n <= maxCount }
	switch {
	case e.State < Pending || e.State > Past:
		return invalidf("task %q: unknown State %d", id, e.State)
	case !isValidTime(e.At) || !isValidTime(e.Due) || e.Next < 0 || e.Next > Never:
		return invalidf("task %q: a time is out of range", id)
	case !isValidCount(e.Attempts) || !isValidCount(e.Crashes) || !isValidCount(e.Runs) || len(e.Failures) > MaxFailures:
		return invalidf("task %q: the number of attempts, crashes, runs or failures is out of range", id)
	}
	if !e.Continues() {
		return invalidf("task %q: it would end with its attempt, and so cannot be imported", id)
	}
	if e.NextTask != nil {
		if !e.Following {
			return invalidf("task %q: it has a NextTask, but is not Following", id)
		}
		if err := e.NextTask.check(id); err != nil {
			return err
		}
	}
	for _, f := range e.Failures {
		if len(f.Text) > MaxText || !utf8.ValidString(f.Text) || !isValidCount(f.Attempt) || !isValidCount(f.HandBacks) || !isValidTime(f.Time) {
			return invalidf("task %q: a failure is out of range, or its text is not UTF-8", id)
		}
	}
	return nil
}

func (t *Task) check(id string) error {
	switch {
	case t.ID != id:
		return invalidf("the ids %q and %q of one item differ", id, t.ID)
	case !IsName(t.Handler):
		return invalidf("task %q: the handler's name %q must have "+nameRule, t.ID, t.Handler)
	case t.Schedule != "" && !IsName(t.Schedule):
		return invalidf("task %q: the schedule's name %q must have "+nameRule, t.ID, t.Schedule)
	case t.Group != "" && !IsName(t.Group):
		return invalidf("task %q: the group's name %q must have "+nameRule, t.ID, t.Group)
	case len(t.Record) > MaxRecord:
		return invalidf("task %q: the record has %d bytes, more than %d", t.ID, len(t.Record), MaxRecord)
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
		return invalidf("%d reports and %d extensions, more than %d", len(r.Reports), len(r.Extend), MaxBatch)
	case r.Lease < time.Microsecond || r.Lease > MaxDelay:
		return invalidf("the lease is %v, not from 1µs to %v", r.Lease, MaxDelay)
	case r.MaxCrashes < 1:
		return invalidf("MaxCrashes is %d, not positive", r.MaxCrashes)
	case r.Worker < 0 || r.Worker > MaxWorker || len(r.About) > MaxAbout || strings.ContainsFunc(r.About, unicode.IsControl) || !utf8.ValidString(r.About):
		return invalidf("the Worker is %d, not from 0 to %d, or its About is not text of at most %d bytes", r.Worker, int64(MaxWorker), MaxAbout)
	}
	if err := r.Claim.check(); err != nil {
		return err
	}
	for i := range r.Reports {
		x := &r.Reports[i]
		switch {
		case x.End < Done || x.End > Dropped:
			return invalidf("task %q: unknown End %d", x.ID, x.End)
		case x.End == Retry && x.Next.IsZero():
			return invalidf("task %q: a Retry needs Next", x.ID)
		case IsSingle(x.ID) && !x.Next.IsZero() && (x.End == Done || x.End == Failed || x.End == Dropped):
			return invalidf("task %q: a requeued run has no Next, because it does not repeat", x.ID)
		case len(x.Result) > MaxResult || len(x.Result) > 0 && (x.End != Done && x.End != Failed || !x.Keep):
			return invalidf("task %q: the result has %d bytes, more than %d, or the run is not kept", x.ID, len(x.Result), MaxResult)
		case !x.Next.IsZero() && !x.Next.isStorable() || x.Due < 0 || x.Due > Farthest:
			return invalidf("task %q: the time %v or %v is out of range", x.ID, x.Next, x.Due)
		}
	}
	return nil
}

func (s *Stamp) check() error {
	if !IsName(s.Sender) || s.Number < 1 || s.Until < 0 {
		return invalidf("the stamp of %q with Number %d and Until %d: the Sender must have "+nameRule+", and the numbers must be positive", s.Sender, s.Number, s.Until)
	}
	return nil
}

// nameRule is what IsName demands, for error texts.
const nameRule = "1 to 512 bytes of UTF-8 without control characters"

// checkID validates the id of a task in a command. Commands that create a task need a
// valid key. Other commands take the key of any existing task, a [DeadID] or a [SingleID],
// but not the ids of entries that the store makes for itself, except Purge that of a run.
func checkID(id string, op Op) error {
	key := KeyOf(id)
	creates := op == Schedule || op == Import
	if key == "" || len(key) > MaxID || creates && !IsName(key) {
		return invalidf("the key %q must have "+nameRule, key)
	}
	suffix, isMore := strings.CutPrefix(id[len(key):], "\x00")
	isNumber := func(s string) bool { return len(s) <= 20 && strings.Trim(s, "0123456789") == "" }
	switch {
	case !isMore:
		return nil
	case op == Import && id == HeadID(key), (op == Import || op == Purge) && strings.HasPrefix(suffix, "r") && isNumber(suffix[1:]):
		return nil
	case op == Schedule:
		return invalidf("the key %q has a NUL", id)
	case !isNumber(suffix):
		return invalidf("the id %q is neither a key nor the id of a dead letter or a requeued run", id)
	}
	return nil
}

// CheckList returns an error that wraps [ErrInvalid] if the filter or the limit is
// invalid. A prefix is the beginning of a name, or any key with a NUL after it.
func CheckList(f *Filter, limit int) error {
	key := KeyOf(f.Prefix)
	switch {
	case f.State > Past || limit < 1 || limit > MaxPage:
		return invalidf("list: the State %v is unknown, or the limit %d is not from 1 to %d", f.State, limit, MaxPage)
	case f.Runs && f.State != 0 && f.State != Past:
		return invalidf("list: Runs with the State %v", f.State)
	case len(f.Handler) > MaxID || len(f.Group) > MaxID || len(key) > MaxID:
		return invalidf("list: the handler %q, the group %q or the prefix %q has more than %d bytes", f.Handler, f.Group, f.Prefix, MaxID)
	case key == f.Prefix && !isText(key):
		return invalidf("list: the prefix %q must be UTF-8 without control characters", f.Prefix)
	}
	return nil
}
