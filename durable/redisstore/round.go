package redisstore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// Do carries out a round in one script, so that the whole round is atomic.
func (s *Store) Do(ctx context.Context, shard int, st store.Stamp, r store.Round) (store.Answer, error) {
	if err := r.Check(&st); err != nil {
		return store.Answer{}, err
	}
	if err := s.begin(ctx); err != nil {
		return store.Answer{}, err
	}
	sh := s.shards[shard]
	if err := s.company(ctx, sh.busy.Load() || len(r.Reports) >= largeRound); err != nil {
		return store.Answer{}, explain(err)
	}
	if r.More != nil {
		r.More(&r)
	}
	x := call{s.scripts.round, sh, append([]any{senderField(&st)}, roundFields...), s.roundArgs(&st, &r)}
	v, err := s.run(ctx, x)
	if err != nil {
		return store.Answer{}, explain(err)
	}
	return s.answer(sh, &r, v)
}

// largeRound is the number of reports from which a round is not delayed.
const largeRound = 32

// company delays a round until the slack after the latest round of any shard has passed.
// The round then includes the reports that arrive during the delay, and is sent together
// with rounds of other shards. At a steady load most of a round's cost is that the server
// and the worker wake up for it: a thousand tasks a second need about a third of the CPU
// time that they need without a delay (BenchmarkSteady). A round after a pause is not
// delayed, and neither is a large one.
func (s *Store) company(ctx context.Context, large bool) error {
	wait := time.Duration(s.latest.Load()) + s.config.slack - time.Since(s.opened)
	if wait > 0 && !large {
		if err := sleep(ctx, wait); err != nil {
			return &unsentError{err}
		}
	}
	s.latest.Store(int64(time.Since(s.opened)))
	return nil
}

var ends = [...]string{store.Done: "d", store.Retry: "r", store.Failed: "x", store.HandBack: "b", store.Dropped: "m"}

// roundFields are the fields of meta that scripts/round.lua reads, after the sender.
var roundFields = []any{"fence", "paused", "owner", "claimed", "done", "called", "keeps", "limits"}

// roundArgs returns the arguments of scripts/round.lua.
func (s *Store) roundArgs(st *store.Stamp, r *store.Round) []any {
	c := &r.Claim
	most := ""
	if c.Asked {
		most = strconv.Itoa(c.Max)
	}
	args := make([]any, 0, 14+6*len(r.Reports)+2*len(r.Extend))
	args = append(args, strconv.FormatInt(st.Number, 10), untilArg(st.Until), micros(r.Lease), strconv.Itoa(r.MaxCrashes),
		bit(r.Leave), strconv.Itoa(len(r.Reports)), strconv.Itoa(len(r.Extend)), most, bit(c.Full), names(max(r.Lease, s.config.recheck), c),
		rooms(c), suspects[c.Suspects], bit(c.Pass), bit(r.Alone))
	for i := range r.Reports {
		x := &r.Reports[i]
		next, text := "", ""
		if !x.Next.IsZero() {
			next = whenArg(x.Next)
		}
		if x.Text != "" {
			text = store.Note(nil, store.Failure{Text: x.Text})[0].Text
		}
		end := ends[x.End]
		if x.Keep {
			end = strings.ToUpper(end)
		}
		if x.End == store.Done {
			text = string(x.Result)
		}
		args = append(args, end, x.ID, strconv.FormatInt(x.Token, 10), next, strconv.FormatInt(int64(x.Due), 10), text)
	}
	for i := range r.Extend {
		args = append(args, r.Extend[i].ID, strconv.FormatInt(r.Extend[i].Token, 10))
	}
	return args
}

// suspects is the maximum number of suspects in a claim; empty means any number.
var suspects = [...]string{store.AllSuspects: "", store.OneSuspect: "1", store.NoSuspect: "0"}

// rooms encodes the rooms of a claim for scripts/round.lua.
func rooms(c *store.Claim) string {
	var b []byte
	for i, r := range c.Rooms {
		h := c.Handlers[i]
		b = append(strconv.AppendInt(append(b, 0, 'h'), int64(len(h)), 10), ':')
		b = append(append(b, h...), 0)
		b = strconv.AppendInt(b, int64(r.Most), 10)
		b = strconv.AppendInt(append(b, ' '), int64(r.First), 10)
	}
	return string(b)
}

func micros(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Microsecond-1)/time.Microsecond), 10)
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// names encodes the handlers and schedules of a worker for scripts/round.lua, after the
// longer of its lease and its longest sleep.
func names(silent time.Duration, c *store.Claim) string {
	if !c.Asked {
		return ""
	}
	b := []byte(micros(silent))
	add := func(letter byte, names []string) {
		for _, s := range names {
			b = append(strconv.AppendInt(append(b, 0, letter), int64(len(s)), 10), ':')
			b = append(b, s...)
		}
	}
	add('h', c.Handlers)
	add('s', c.Schedules)
	return string(b)
}

// The answer of scripts/round.lua to a round.
const answerSize = 13

func (s *Store) answer(sh *shard, r *store.Round, v any) (a store.Answer, err error) {
	f, _ := v.([]any)
	if len(f) != answerSize {
		return a, unexpected(v)
	}
	var n [answerSize]int64
	for _, i := range []int{0, 3, 4, 5, 6, 11, 12} {
		var ok bool
		if n[i], ok = f[i].(int64); !ok {
			return a, unexpected(v)
		}
	}
	accepted, _ := f[1].(string)
	leases, _ := f[2].(string)
	ids, _ := f[7].([]any)
	scores, _ := f[8].([]any)
	records, _ := f[9].([]any)
	runs, _ := f[10].([]any)
	if len(accepted) != 1+len(r.Reports) || len(leases) != 1+len(r.Extend) ||
		len(scores) != len(ids) || len(records) != len(ids) || len(runs) != len(ids) {
		return a, unexpected(v)
	}
	a.Now, a.Paused, a.Limited = store.Time(n[0]), n[11] == 1, n[12] == 1
	sh.read(a.Now)
	if len(r.Reports) > 0 {
		a.Receipts = make([]store.Receipt, len(r.Reports))
	}
	for i := range a.Receipts {
		a.Receipts[i] = store.Receipt(accepted[1+i] - '0')
	}
	if len(r.Extend) > 0 {
		a.Extensions = make([]store.Extension, len(r.Extend))
	}
	for i := range a.Extensions {
		a.Extensions[i] = store.Extension(leases[1+i] - '0')
	}
	if len(ids) > 0 {
		a.Tasks = make([]store.Claimed, 0, len(ids))
	}
	for i := range ids {
		record, ok := records[i].(string)
		if !ok {
			continue
		}
		id, _ := ids[i].(string)
		score, _ := scores[i].(string)
		before, _ := runs[i].(string)
		a.Tasks = append(a.Tasks, claimed(id, n[6]+int64(i), record, score, before))
	}
	if len(a.Tasks) == 0 {
		a.Tasks = nil
	}
	if r.Claim.Asked {
		sh.busy.Store(len(a.Tasks) > 0 && len(a.Tasks) == r.Claim.Max)
	}
	a.Next = s.next(r, &a, n[3] == 1, n[4], n[5])
	return a, nil
}

func claimed(id string, token int64, record, score, before string) store.Claimed {
	x := store.Claimed{Task: parseRecord(id, record), Token: token, Due: parseTime(score)}
	if r, ok := parseRun(before); ok {
		x.Due, x.Attempts, x.Crashes = r.due, r.attempts, r.crashes
	}
	return x
}

// backup is how much later than the task is due a worker that does not own the shard
// checks it. Up to as much is added at random, so that the workers do not all check at
// once.
const backup = 250 * time.Millisecond

// next returns when a worker must claim again. wait and lease count from the script's
// run, and the worker counts from when it sent the round, so it is early by less than a
// round trip. wait and lease are microseconds, or negative if there is none.
func (s *Store) next(r *store.Round, a *store.Answer, own bool, wait, lease int64) time.Duration {
	d := s.config.recheck
	if len(a.Tasks) > 0 {
		d = min(d, r.Lease)
	}
	soon := func(micros int64) {
		if micros < 0 {
			return
		}
		at := time.Duration(micros) * time.Microsecond
		if !own && micros > 0 {
			at += backup + rand.N(backup)
		}
		d = min(d, at)
	}
	soon(wait)
	soon(lease)
	return d
}
