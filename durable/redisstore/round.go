package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"math/rand/v2"
	"slices"
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
	if err := s.checkOpen(ctx); err != nil {
		return store.Answer{}, err
	}
	sh := s.shards[shard]
	if err := s.delayRound(ctx, sh.mayHaveMoreDue.Load() || len(r.Reports) >= largeRoundReports); err != nil {
		return store.Answer{}, toStoreError(err)
	}
	if r.More != nil {
		r.More(&r)
	}
	x := scriptCall{script: s.scripts.round, shard: sh, metaFields: append([]any{senderField(&st)}, roundMetaFields...), args: s.roundArgs(sh, &st, &r, false)}
	v, err := s.runCall(ctx, x)
	if err != nil && err.Error() == unknownNames {
		x.args = s.roundArgs(sh, &st, &r, true)
		v, err = s.runCall(ctx, x)
	}
	if err != nil {
		return store.Answer{}, toStoreError(err)
	}
	return s.parseRoundAnswer(sh, &r, v)
}

// unknownNames is the answer of scripts/round.lua if the shard may not have the claim's list
// of names or the worker's description. Nothing was done.
const unknownNames = "TICKLESS names"

// A round with largeRoundReports reports or more is not delayed.
const largeRoundReports = 32

// delayRound waits until the time of WithClaimDelay has passed since the latest round of any
// shard. More reports then share a round, which saves CPU time. Large rounds do not wait.
func (s *Store) delayRound(ctx context.Context, large bool) error {
	delay := time.Duration(s.latestRoundNanos.Load()) + s.config.minRoundInterval - time.Since(s.openedAt)
	if delay > 0 && !large {
		if err := sleep(ctx, delay); err != nil {
			return &unsentError{err}
		}
	}
	s.latestRoundNanos.Store(int64(time.Since(s.openedAt)))
	return nil
}

// reportOpNames are the names of the reports in scripts/round.lua.
var reportOpNames = [...]string{store.Done: "d", store.Retry: "r", store.Failed: "x", store.HandBack: "b", store.Dropped: "m"}

// roundMetaFields are the fields of meta that scripts/round.lua reads after the sender's
// field.
var roundMetaFields = []any{"fence", "paused", "owner", "claimed", "done", "keeps", "limits", "stopped", "groups"}

// roundArgs returns the arguments of scripts/round.lua, with the claim's list of names if
// withNames is true.
func (s *Store) roundArgs(sh *shard, st *store.Stamp, r *store.Round, withNames bool) []any {
	c := &r.Claim
	maxTasks, names, list, about := "", "", "", ""
	if c.Asked {
		maxTasks = strconv.Itoa(c.Max)
		x := s.nameListOf(c)
		names = microsArg(max(r.Lease, s.config.recheckInterval)) + " " + strconv.FormatInt(r.Worker, 10) + " " + x.id
		if withNames {
			list, about = x.text, r.About
		}
	}
	args := make([]any, 0, 18+6*len(r.Reports)+2*len(r.Extend))
	args = append(args, strconv.FormatInt(st.Number, 10), deadlineArg(st.Until), microsArg(r.Lease), strconv.Itoa(r.MaxCrashes),
		boolArg(r.Leave), strconv.Itoa(len(r.Reports)), strconv.Itoa(len(r.Extend)), maxTasks, boolArg(c.Full), names,
		roomsArg(c), strconv.Itoa(c.Suspects), passArg(sh, c), boolArg(c.OnlySuspect), strconv.Itoa(c.Spare), list,
		strconv.FormatInt(r.Worker, 10), about)
	for i := range r.Reports {
		x := &r.Reports[i]
		next, text := "", ""
		if !x.Next.IsZero() {
			next = whenArg(x.Next)
		}
		if x.Text != "" {
			text = store.Note(nil, store.Failure{Text: x.Text})[0].Text
		}
		op := reportOpNames[x.End]
		if x.Keep {
			op = strings.ToUpper(op)
		}
		switch {
		case x.End == store.Done:
			text = string(x.Result)
		case x.Keep && (x.End == store.Failed || x.End == store.Dropped):
			text = strconv.Itoa(len(text)) + ":" + text + string(x.Result)
		}
		args = append(args, op, x.ID, strconv.FormatInt(x.Token, 10), next, strconv.FormatInt(int64(x.Due), 10), text)
	}
	for i := range r.Extend {
		args = append(args, r.Extend[i].ID, strconv.FormatInt(r.Extend[i].Token, 10))
	}
	return args
}

// roomsArg encodes a claim's rooms for scripts/round.lua.
func roomsArg(c *store.Claim) string {
	var b []byte
	for _, r := range c.Rooms {
		b = strconv.AppendInt(append(b, ' '), int64(r.Handler), 10)
		b = strconv.AppendInt(append(b, ':'), int64(r.Most), 10)
		b = append(append(b, ':'), boolArg(r.Busy)...)
	}
	return string(b)
}

// passArg returns the argument PASS of scripts/round.lua. A claim that follows a wake-up
// passes it on if handlers have less room than the claim has: see callWake.
func passArg(sh *shard, c *store.Claim) string {
	if c.Asked && c.Max > 0 {
		if passes := sh.passes.Swap(0); passes > 0 && len(c.Rooms) > 0 {
			return passedWakeMember + strconv.Itoa(int(passes))
		}
	}
	if c.Pass {
		return freshWakeMember
	}
	return ""
}

func microsArg(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Microsecond-1)/time.Microsecond), 10)
}

func boolArg(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// A nameList is a worker's handlers and schedules, as scripts/round.lua stores them under
// the id. A claim sends only the id.
type nameList struct {
	handlers, schedules []string
	text, id            string
}

// nameListOf returns the list of a claim. It keeps the latest list, because a worker sends
// the same slices with each claim.
func (s *Store) nameListOf(c *store.Claim) *nameList {
	isSameSlice := func(a, b []string) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }
	if x := s.latestNames.Load(); x != nil && isSameSlice(x.handlers, c.Handlers) && isSameSlice(x.schedules, c.Schedules) {
		return x
	}
	var b []byte
	appendNames := func(letter byte, names []string) {
		for _, name := range names {
			b = append(strconv.AppendInt(append(b, 0, letter), int64(len(name)), 10), ':')
			b = append(b, name...)
		}
	}
	appendNames('h', c.Handlers)
	appendNames('s', c.Schedules)
	digest := sha1.Sum(b)
	x := &nameList{c.Handlers, c.Schedules, string(b) + "\x00", hex.EncodeToString(digest[:8])}
	s.latestNames.Store(x)
	return x
}

// roundAnswerLen is the number of values in an answer of scripts/round.lua.
const roundAnswerLen = 15

func (s *Store) parseRoundAnswer(sh *shard, r *store.Round, v any) (a store.Answer, err error) {
	f, _ := v.([]any)
	if len(f) != roundAnswerLen {
		return a, answerError(v)
	}
	var n [roundAnswerLen]int64
	for _, i := range []int{0, 3, 4, 5, 6, 11, 12, 13} {
		var ok bool
		if n[i], ok = f[i].(int64); !ok {
			return a, answerError(v)
		}
	}
	accepted, _ := f[1].(string)
	leases, _ := f[2].(string)
	ids, _ := f[7].([]any)
	scores, _ := f[8].([]any)
	records, _ := f[9].([]any)
	runs, _ := f[10].([]any)
	if len(accepted) != 1+len(r.Reports) || strings.Trim(accepted[1:], "012") != "" ||
		len(leases) != 1+len(r.Extend) || strings.Trim(leases[1:], "012") != "" ||
		len(scores) != len(ids) || len(records) != len(ids) || len(runs) != len(ids) {
		return a, answerError(v)
	}
	a.Now, a.Paused, a.Limited = store.Time(n[0]), n[11] == 1, n[12] == 1
	a.Suspects = store.WaitingSuspects(n[13])
	if halted, _ := f[14].(string); halted != "" {
		names := parseNames(halted)
		for _, h := range r.Claim.Handlers {
			if slices.Contains(names, h) {
				a.PausedHandlers = append(a.PausedHandlers, h)
			}
		}
	}
	sh.saveReading(a.Now)
	a.Receipts, a.Extensions = parseDigits[store.Receipt](accepted[1:]), parseDigits[store.Extension](leases[1:])
	for i := range ids {
		record, ok := records[i].(string)
		if !ok {
			continue
		}
		id, _ := ids[i].(string)
		score, _ := scores[i].(string)
		before, _ := runs[i].(string)
		a.Tasks = append(a.Tasks, parseClaimedTask(id, n[6]+int64(i), record, score, before))
	}
	if r.Claim.Asked {
		sh.mayHaveMoreDue.Store(len(a.Tasks) > 0 && len(a.Tasks) == r.Claim.Max)
	}
	a.Next = s.nextClaimDelay(r, &a, n[3] == 1, n[4], n[5])
	return a, nil
}

// parseDigits decodes outcomes, receipts or extensions, a character each: the digits and a colon.
func parseDigits[T ~uint8](s string) (list []T) {
	for i := range len(s) {
		list = append(list, T(s[i]-'0'))
	}
	return list
}

func parseClaimedTask(id string, token int64, record, score, runText string) store.Claimed {
	x := store.Claimed{Task: parseRecord(id, record), Token: token, Due: parseTime(score)}
	if r, ok := parseRunState(runText); ok {
		x.Due, x.Attempts, x.Crashes, x.Suspect, x.Following = r.firstDue, r.attempts, r.crashes, r.isSuspect, r.followsAt != ""
	}
	return x
}

// A worker that does not own the shard claims a due task later than the owner, by one to
// two times backupDelay.
const backupDelay = 250 * time.Millisecond

// nextClaimDelay returns how long after sending the round the worker must claim again.
// untilDue is the time until a task is due, and untilLeaseEnd until a lease ends. Both
// are in microseconds, or negative for never.
func (s *Store) nextClaimDelay(r *store.Round, a *store.Answer, isOwner bool, untilDue, untilLeaseEnd int64) time.Duration {
	d := s.config.recheckInterval
	if len(a.Tasks) > 0 {
		d = min(d, r.Lease)
	}
	claimWithin := func(micros int64) {
		if micros < 0 {
			return
		}
		delay := time.Duration(micros) * time.Microsecond
		if !isOwner && micros > 0 {
			delay += backupDelay + rand.N(backupDelay)
		}
		d = min(d, delay)
	}
	claimWithin(untilDue)
	claimWithin(untilLeaseEnd)
	return d
}
