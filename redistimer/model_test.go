package redistimer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"github.com/tickless/tickless/redistimer/internal/redistest"
)

// The model test drives the scripts of one shard with random calls, as clients
// and workers race with one another, crash, come back and repeat what they do
// not know the answer of, at once or much later, under a clock of its own; beside
// them it keeps what should be in Redis, and compares all of it after each step.
// TICKLESS_MODEL sets the number of steps.

type modelRun struct {
	token             int64
	attempt, crashes  int
	due               int64
	stopping, follows bool
	beside            string // the record with which it was scheduled while it ran
	next              int64  // of what follows, or of the next attempt; zero: none
}

type modelTask struct {
	record string
	state  State
	score  int64
	run    *modelRun
	runs   int // of a dead letter of a task that repeats
}

// held is what a worker believes to hold.
type held struct {
	id    string
	token int64
	due   int64
}

type modelClaim struct {
	number int64
	ids    []string // what it was given, with tokens from first on
	first  int64
}

// modelCommand is what a sender has sent.
type modelCommand struct {
	script *script
	header header
	args   []any
	answer any
}

type model struct {
	t     *testing.T
	rng   *rand.Rand
	cuts  bool // replies are lost
	c     *Client
	mini  *miniredis.Miniredis
	now   int64
	tasks map[string]*modelTask
	// beliefs of workers, true and stale.
	beliefs []held
	last    map[string]*modelClaim
	fence   int64
	paused  bool
	// senders have the latest commands of each sender of commands but claims.
	senders map[string][]modelCommand
	number  int64
	counts  map[string]int
}

const (
	modelKeys    = 12
	modelLease   = 1000 // microseconds
	modelCrashes = 3
)

func TestModel_ScriptsAgainstAMap(t *testing.T) { runModel(t, 20_000, nil) }

// The same, while one reply in four is lost. What was not answered is sent again,
// by go-redis and by whoever sent it, until it is.
func TestModel_ScriptsAgainstAMapWithRepliesLost(t *testing.T) {
	lost := 0
	runModel(t, 6000, func() bool {
		if rand.IntN(4) != 0 {
			return false
		}
		lost++
		return true
	})
	t.Logf("%d replies lost", lost)
	require.Greater(t, lost, 1000)
}

// runModel runs the model, through a proxy if there is a cut: see redistest.NewProxy.
func runModel(t *testing.T, steps int, cut func() bool) {
	if s := os.Getenv("TICKLESS_MODEL"); s != "" {
		n, err := strconv.Atoi(s)
		require.NoError(t, err)
		steps = n
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TICKLESS_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("TICKLESS_SEED=%d", seed)
	s := miniredis.RunT(t)
	addr := s.Addr()
	if cut != nil {
		addr = redistest.NewProxy(t, addr, cut).Addr
	}
	r := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: 1, MinRetryBackoff: -1})
	defer r.Close()
	m := &model{
		t:      t,
		rng:    rand.New(rand.NewPCG(seed, 0)),
		cuts:   cut != nil,
		c:      New(r, WithShards(1)),
		mini:   s,
		now:    time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro(),
		tasks:  make(map[string]*modelTask),
		last:   make(map[string]*modelClaim),
		counts: make(map[string]int),

		senders: make(map[string][]modelCommand),
	}
	m.advance(0)
	for m.c.know(context.Background()) != nil {
		require.NotNil(t, cut)
	}
	for range steps {
		m.advance(m.rng.Int64N(200))
		m.step()
		m.compare()
	}
	t.Log(m.counts)
	for _, what := range []string{
		"created", "replaced", "kept", "following", "moved", "removed", "stopping", "absent", "repeated", "overtaken", "late", "claim overtaken",
		"claimed", "repeated claim", "crashed", "poisoned", "stale", "done", "done, repeats", "retried", "died",
		"died, repeats", "died again", "released", "released for later", "followed", "stopped", "extended", "extend refused", "requeued", "purged",
	} {
		require.NotZero(t, m.counts[what], "%s never happened", what)
	}
}

func (m *model) advance(d int64) {
	m.now += d
	m.mini.SetTime(time.UnixMicro(m.now))
}

func (m *model) key() string { return "k" + strconv.Itoa(m.rng.IntN(modelKeys)) }

func (m *model) send(x modelCommand) (any, error) {
	for {
		v, err := m.c.run(context.Background(), call{x.script, m.c.shards[0], x.args, x.header})[0].Result()
		if !m.cuts || !errors.Is(err, io.EOF) {
			return v, err
		}
	}
}

// call runs a script as the next command of a sender. What comes too late is not
// carried out.
func (m *model) call(s *script, args ...any) any {
	sender := fmt.Sprint("s:", m.rng.IntN(4))
	m.number += 1 + m.rng.Int64N(3)
	x := modelCommand{s, header{sender: sender, number: m.number}, args, nil}
	switch m.rng.IntN(6) {
	case 0:
		x.header.until = m.now - 1
		before := m.stored()
		_, err := m.send(x)
		require.EqualError(m.t, err, "TICKLESS late")
		m.counts["late"]++
		require.Equal(m.t, before, m.stored())
		x.header.until = m.now
	case 1:
		x.header.until = m.now + 100
	}
	v, err := m.send(x)
	require.NoError(m.t, err)
	x.answer = v
	if m.rng.IntN(4) == 0 {
		// The answer was lost, and go-redis sends it again.
		m.repeat(x)
	}
	m.senders[sender] = append(m.senders[sender], x)
	return v
}

func (m *model) repeat(x modelCommand) {
	v, err := m.send(x)
	require.NoError(m.t, err)
	require.Equal(m.t, x.answer, v)
	m.counts["repeated"]++
}

// copies sends copies of what was sent before, and its time may be over: the latest
// of a sender has the answer that it had, and the one before is refused.
func (m *model) copies() {
	for _, list := range m.senders {
		n := len(list)
		m.repeat(list[n-1])
		if n > 1 {
			_, err := m.send(list[n-2])
			require.EqualError(m.t, err, "TICKLESS stale")
			m.counts["overtaken"]++
		}
		return
	}
}

// digits runs a script that answers with digits.
func (m *model) digits(s *script, args ...any) string {
	return fmt.Sprint(m.call(s, args...)) // miniredis takes a digit for a number
}

func (m *model) expect(want Outcome, v any) {
	m.t.Helper()
	if s, ok := v.(string); ok {
		v = int64(s[0] - '0')
	}
	require.Equal(m.t, want, Outcome(v.(int64)))
	m.counts[want.String()]++
}

func (m *model) step() {
	switch n := m.rng.IntN(100); {
	case n < 20:
		m.schedule()
	case n < 25:
		m.cancel()
	case n < 31:
		m.reschedule()
	case n < 55:
		m.claim()
	case n < 82:
		m.finish()
	case n < 90:
		m.extend()
	case n < 93:
		m.requeue()
	case n < 94:
		m.purge()
	case n < 95:
		m.copies()
	case n < 97:
		// A worker forgets all it had: a crash.
		m.beliefs = nil
		m.last = make(map[string]*modelClaim)
	case n < 98:
		m.paused = !m.paused
		on := 0
		if m.paused {
			on = 1
		}
		m.call(pauseScript, on)
	default:
		m.advance(3 * modelLease)
	}
}

// when draws a time, as a script's argument and as it is.
func (m *model) when() (string, int64) {
	d := m.rng.Int64N(2000)
	if m.rng.IntN(2) == 0 {
		return fmt.Sprintf("+%d", d), m.now + d
	}
	at := m.now + d - 1000
	return strconv.FormatInt(at, 10), at
}

func (m *model) schedule() {
	mode := []string{modeUpsert, modeUpsert, modeNew, modeEarlier, modeLater}[m.rng.IntN(5)]
	args := []any{mode}
	var want []Outcome
	for range 1 + m.rng.IntN(3) {
		id := m.key()
		arg, at := m.when()
		due := digits16(at)
		record, err := encode(&Task{Key: id, Handler: "h", Body: []byte(strconv.Itoa(m.rng.Int()))}, due)
		require.NoError(m.t, err)
		if arg[0] == '+' {
			args = append(args, id, arg, record[dueSize:])
		} else {
			args = append(args, id, arg, record)
		}
		want = append(want, m.scheduled(mode, id, at, record))
	}
	answer := m.digits(scheduleScript, args...)
	for i, v := range answer {
		m.expect(want[i], int64(v-'0'))
	}
}

func (m *model) scheduled(mode, id string, at int64, record string) Outcome {
	x := m.tasks[id]
	later := func(there int64) bool {
		return mode == modeEarlier && at >= there || mode == modeLater && at <= there
	}
	switch {
	case x == nil:
		m.tasks[id] = &modelTask{record: record, state: Pending, score: at}
		return Created
	case mode == modeNew:
		return Kept
	case x.state == Pending && later(x.score):
		return Kept
	case x.state == Running && x.run.follows && later(x.run.next):
		return Kept
	case x.state == Running:
		x.run.beside, x.run.follows, x.run.next = record, true, at
		return Following
	}
	*x = modelTask{record: record, state: Pending, score: at}
	return Replaced
}

func (m *model) cancel() {
	id := m.key()
	x := m.tasks[id]
	want := Absent
	switch {
	case x == nil || x.state == Dead:
	case x.state == Pending:
		want = Removed
		delete(m.tasks, id)
	default:
		want = Stopping
		x.run.stopping, x.run.follows, x.run.beside, x.run.next = true, false, "", 0
	}
	m.expect(want, m.call(cancelScript, id))
}

func (m *model) reschedule() {
	id := m.key()
	arg, at := m.when()
	x := m.tasks[id]
	want := Absent
	switch {
	case x == nil || x.state == Dead:
	case x.state == Pending:
		want, x.score = Moved, at
		if x.run == nil || x.run.attempt == 0 && x.run.crashes == 0 {
			x.run = &modelRun{due: at}
		} else {
			x.run.next = at
		}
	default:
		want, x.run.follows, x.run.next = Following, true, at
	}
	m.expect(want, m.call(rescheduleScript, id, arg))
}

// follow is for a task that was scheduled again while it ran, and has ended.
func (m *model) follow(x *modelTask) {
	m.counts["followed"]++
	if x.run.beside != "" {
		x.record = x.run.beside
	}
	*x = modelTask{record: x.record, state: Pending, score: x.run.next, run: &modelRun{due: x.run.next}}
}

// expire takes back leases, as every claim does first.
func (m *model) expire() {
	for id, x := range m.tasks {
		if x.state != Running || x.score > m.now {
			continue
		}
		m.counts["crashed"]++
		switch {
		case x.run.follows:
			m.follow(x)
		case x.run.stopping:
			delete(m.tasks, id)
			m.counts["stopped"]++
		default:
			x.run.token = 0
			x.run.crashes++
			x.score = m.now
			x.state = Pending
			if x.run.crashes >= modelCrashes {
				x.state = Dead
				m.counts["poisoned"]++
			}
		}
	}
}

func (m *model) claim() {
	worker := "s:w" + strconv.Itoa(m.rng.IntN(3))
	n := m.rng.IntN(5)
	before := m.last[worker]
	again := before != nil && m.rng.IntN(4) == 0
	var number int64
	if again {
		number = before.number
	} else {
		m.number += 1 + m.rng.Int64N(3)
		number = m.number
	}
	x := modelCommand{claimScript, header{sender: worker, number: number},
		[]any{n, modelLease, modelCrashes, m.rng.IntN(2), m.rng.IntN(2)}, nil}
	v, err := m.send(x)
	require.NoError(m.t, err)
	answer := v.([]any)
	if m.rng.IntN(10) == 0 {
		// A copy of what the worker sent before comes now.
		x.header.number = number - 1
		_, err := m.send(x)
		require.EqualError(m.t, err, "TICKLESS stale")
		m.counts["claim overtaken"]++
	}
	m.expire()
	base := answer[4].(int64)
	ids, records, runs := answer[5].([]any), answer[7].([]any), answer[8].([]any)
	var got []string
	for i, id := range ids {
		if records[i] != nil {
			got = append(got, id.(string))
			if again {
				require.Equal(m.t, m.tasks[id.(string)].record, records[i], "the record that it had")
			}
		}
	}

	if again {
		// It gets what it still holds of what it got, and no more.
		m.counts["repeated claim"]++
		var want []string
		for i, id := range before.ids {
			if x := m.tasks[id]; x != nil && x.state == Running && x.run.token == before.first+int64(i) {
				// A lease that was prolonged since is found no more, but no worker
				// prolongs before it knows.
				want = append(want, id)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(m.t, append([]string{}, want...), append([]string{}, got...))
		for _, id := range want {
			m.tasks[id].score = m.now + modelLease
		}
		return
	}

	var due []string
	for id, x := range m.tasks {
		if x.state == Pending && x.score <= m.now {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		return cmp.Or(cmp.Compare(m.tasks[a].score, m.tasks[b].score), cmp.Compare(a, b))
	})
	due = due[:min(n, len(due))]
	if m.paused {
		due = nil
	}
	require.Equal(m.t, append([]string{}, due...), append([]string{}, got...))
	m.last[worker] = &modelClaim{number, got, base}
	if len(got) == 0 {
		return
	}
	require.Greater(m.t, base, m.fence, "tokens grow")
	for i, id := range got {
		x := m.tasks[id]
		r := run{due: parseTime(answer[6].([]any)[i].(string))}
		if runs[i] != nil {
			r = parseRun(runs[i].(string))
			r.next = time.Time{}
		}
		if x.run == nil {
			x.run = &modelRun{due: x.score}
		}
		require.Equal(m.t, run{attempts: x.run.attempt, crashes: x.run.crashes, due: time.UnixMicro(x.run.due)}, r)
		require.Equal(m.t, x.record, records[i])
		x.run.attempt++
		x.run.next = 0
		x.run.token = base + int64(i)
		x.state, x.score = Running, m.now+modelLease
		m.fence = x.run.token
		m.beliefs = append(m.beliefs, held{id, x.run.token, x.run.due})
		m.counts["claimed"]++
	}
}

// finish reports on some of what workers believe to hold.
func (m *model) finish() {
	var args []any
	want := ""
	for range 1 + m.rng.IntN(3) {
		if len(m.beliefs) == 0 {
			break
		}
		i := m.rng.IntN(len(m.beliefs))
		h := m.beliefs[i]
		if m.rng.IntN(4) > 0 { // else it is reported again, or late
			m.beliefs = slices.Delete(m.beliefs, i, i+1)
		}
		for j := 1; j < len(args); j += 6 {
			if args[j] == h.id {
				h.id = "" // no two reports on one task in one call
			}
		}
		if h.id == "" {
			continue
		}
		op := []string{"d", "d", "r", "x", "m", "b", "u"}[m.rng.IntN(7)]
		arg, at := "", int64(0)
		// A run that dies while the dead letter of another is there would be rare.
		again := m.tasks[deadID(h.id)] != nil && m.rng.IntN(2) == 0
		if again {
			op = "x"
		}
		switch {
		case again:
			at = m.now
			arg = strconv.FormatInt(at, 10)
		case op == "r" || op == "u" || op == "b" && m.rng.IntN(3) == 0:
			arg, at = m.when()
		case op != "b" && m.rng.IntN(3) == 0:
			at = m.now + m.rng.Int64N(2000) - 1000
			arg = strconv.FormatInt(at, 10)
		}
		args = append(args, op, h.id, h.token, arg, h.due, "text of "+h.id)
		if m.finished(op, h, arg != "", at) {
			want += "1"
		} else {
			want += "0"
			m.counts["stale"]++
		}
	}
	if len(args) > 0 {
		require.Equal(m.t, want, m.digits(finishScript, args...))
	}
}

func (m *model) finished(op string, h held, again bool, at int64) bool {
	x := m.tasks[h.id]
	if x == nil || x.state != Running || x.run.token != h.token {
		return false
	}
	r := *x.run
	r.token = 0
	if op == "m" && !r.follows && !r.stopping {
		op = "x"
		r.attempt--
		m.counts["died before an attempt"]++
	}
	switch {
	case r.follows:
		m.follow(x)
	case r.stopping:
		m.counts["stopped"]++
		delete(m.tasks, h.id)
	case op == "d" && !again:
		m.counts["done"]++
		delete(m.tasks, h.id)
	case op == "d":
		m.counts["done, repeats"]++
		*x = modelTask{record: x.record, state: Pending, score: at, run: &modelRun{due: at}}
	case op == "r":
		m.counts["retried"]++
		r.next = at
		*x = modelTask{record: x.record, state: Pending, score: at, run: &r}
	case op == "x" && !again:
		m.counts["died"]++
		*x = modelTask{record: x.record, state: Dead, score: m.now, run: &r}
	case op == "x":
		m.counts["died, repeats"]++
		died := &modelTask{record: x.record, state: Dead, score: m.now, run: &r, runs: 1}
		if there := m.tasks[deadID(h.id)]; there != nil {
			died.runs += there.runs
			m.counts["died again"]++
		}
		m.tasks[deadID(h.id)] = died
		*x = modelTask{record: x.record, state: Pending, score: at, run: &modelRun{due: at}}
	case op == "b" || op == "u":
		m.counts["released"]++
		r.attempt--
		*x = modelTask{record: x.record, state: Pending, score: h.due, run: &r}
		if again {
			x.score, r.next = at, at
			m.counts["released for later"]++
		}
	}
	return true
}

func (m *model) extend() {
	if len(m.beliefs) == 0 {
		return
	}
	h := m.beliefs[m.rng.IntN(len(m.beliefs))]
	want := "0"
	if x := m.tasks[h.id]; x != nil && x.state == Running && x.run.token == h.token {
		want = "1"
		if x.run.stopping {
			want = "2"
		}
		x.score = m.now + modelLease
		m.counts["extended"]++
		// It knows what it got, so it does not ask again.
		clear(m.last)
	} else {
		m.counts["extend refused"]++
	}
	v, err := m.send(modelCommand{script: extendScript, args: []any{modelLease, h.id, h.token}})
	require.NoError(m.t, err)
	require.Equal(m.t, want, fmt.Sprint(v))
}

func (m *model) dead() string {
	var ids []string
	for id, x := range m.tasks {
		if x.state == Dead {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || m.rng.IntN(4) == 0 {
		return m.key()
	}
	slices.Sort(ids)
	return ids[m.rng.IntN(len(ids))]
}

func (m *model) requeue() {
	id := m.dead()
	arg, at := m.when()
	x := m.tasks[id]
	want := Absent
	if x != nil && x.state == Dead {
		want = Moved
		delete(m.tasks, id)
		moved := id
		if x.runs > 0 {
			if moved = id + strconv.FormatInt(x.run.due, 10); m.tasks[moved] != nil {
				moved = id + strconv.FormatInt(m.now, 10)
			}
		}
		m.tasks[moved] = &modelTask{record: x.record, state: Pending, score: at, run: &modelRun{due: at}}
		m.counts["requeued"]++
	}
	m.expect(want, m.call(requeueScript, id, arg))
}

func (m *model) purge() {
	id := m.dead()
	x := m.tasks[id]
	want := Absent
	if x != nil && x.state == Dead {
		want = Removed
		delete(m.tasks, id)
		m.counts["purged"]++
	}
	m.expect(want, m.call(purgeScript, id))
}

// compare compares all that is in Redis with the model, and so sees that every
// task is in exactly one place.
func (m *model) compare() {
	want := make(map[string]map[string]string)
	for _, k := range []string{"due", "lease", "dead", "task", "run"} {
		want[k] = make(map[string]string)
	}
	places := map[State]string{Pending: "due", Running: "lease", Dead: "dead"}
	for id, x := range m.tasks {
		want[places[x.state]][id] = strconv.FormatInt(x.score, 10)
		want["task"][id] = x.record
		if r := x.run; r != nil {
			flags, next := "", "-"
			if r.stopping {
				flags += "c"
			}
			if r.beside != "" {
				flags += "n"
				want["task"][id+"\x00new"] = r.beside
			}
			if flags == "" {
				flags = "-"
			}
			if r.next != 0 {
				next = strconv.FormatInt(r.next, 10)
			}
			if x.runs > 0 {
				next = strconv.Itoa(x.runs)
			}
			want["run"][id] = fmt.Sprint(r.token, " ", r.attempt, " ", r.crashes, " ", r.due, " ", flags, " ", next)
		}
	}
	got := m.stored()
	for k := range want {
		require.Equal(m.t, want[k], got[k], k)
	}
	// Failures are kept of runs alone.
	for id := range got["err"] {
		require.Contains(m.t, want["run"], id, "err has something of no run")
	}
}

// stored returns what is in Redis.
func (m *model) stored() map[string]map[string]string {
	out := make(map[string]map[string]string)
	keys := m.c.shards[0].keys
	db := m.mini.DB(0)
	for i, k := range []string{"due", "lease", "task", "run", "dead", "err"} {
		got := make(map[string]string)
		switch k {
		case "due", "lease", "dead":
			scores, _ := db.SortedSet(keys[i])
			for id, s := range scores {
				got[id] = strconv.FormatFloat(s, 'f', 0, 64)
			}
		default:
			ids, _ := db.HKeys(keys[i])
			for _, id := range ids {
				got[id] = db.HGet(keys[i], id)
			}
		}
		out[k] = got
	}
	return out
}
