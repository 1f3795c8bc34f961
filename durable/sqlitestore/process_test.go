package sqlitestore_test

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable/sqlitestore"
	"github.com/tickless/tickless/durable/store"
	"github.com/tickless/tickless/durable/store/storetest"
	"github.com/tickless/tickless/timertest"
)

// A request is a call of a Store in another process, at a time of the test's clock.
type request struct {
	Now, Wall time.Time
	Change    bool
	Stamp     store.Stamp
	Command   command
	Round     round
	Whens     []when // the times of the items or reports, because gob cannot encode a When
}

type command struct {
	Op    store.Op
	Keep  store.Keep
	Items []item
}

type item struct {
	ID, Generation string
	Note           string
	Task           store.Task
	Entry          *store.Entry
	Limit          *store.Limit
	Next           bool
	Anew, Paused   bool
	Version        int64
	IfVersion      int64
}

type round struct {
	Reports    []report
	Extend     []store.Lease
	Claim      store.Claim
	Lease      time.Duration
	MaxCrashes int
	Worker     int64
	About      string
	Leave      bool
}

type report struct {
	store.Lease
	End    store.End
	Due    store.Time
	Text   string
	Keep   bool
	Result []byte
}

type when struct {
	Micros  int64
	FromNow bool
	None    bool
}

func whenOf(w store.When) when {
	micros, fromNow := w.Parts()
	return when{micros, fromNow, w.IsZero()}
}

func (w when) store() store.When {
	switch {
	case w.None:
		return store.When{}
	case w.FromNow:
		return store.After(time.Duration(w.Micros) * time.Microsecond)
	}
	return store.At(store.Time(w.Micros))
}

type response struct {
	Outcomes []store.Outcome
	Answer   store.Answer
	Err      string
	Is       []int // of known
}

var known = []error{store.ErrNotDone, store.ErrInvalid, store.ErrLate, store.ErrStale, store.ErrBusy, store.ErrFull, store.ErrClosed}

type remoteError struct {
	text string
	is   []int
}

func (e *remoteError) Error() string { return e.text }

func (e *remoteError) Unwrap() (all []error) {
	for _, i := range e.is {
		all = append(all, known[i])
	}
	return all
}

// serveChild carries out the requests that it reads from standard input.
func serveChild(path string) error {
	clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	st, err := sqlitestore.Open(path, sqlitestore.WithClock(clk), sqlitestore.WithSyncInterval(time.Minute))
	if err != nil {
		return err
	}
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var x request
		if err := in.Decode(&x); errors.Is(err, io.EOF) {
			return st.Close()
		} else if err != nil {
			return err
		}
		clk.AdvanceTo(x.Now)
		clk.SetWall(x.Wall)
		var y response
		if x.Change {
			c := store.Command{Op: x.Command.Op, Keep: x.Command.Keep}
			for i, z := range x.Command.Items {
				c.Items = append(c.Items, store.Item{ID: z.ID, Generation: z.Generation, Task: z.Task, Next: z.Next, Anew: z.Anew, Paused: z.Paused, Version: z.Version, IfVersion: z.IfVersion, Entry: z.Entry, Limit: z.Limit, Note: z.Note, When: x.Whens[i].store()})
			}
			y.Outcomes, err = st.Change(context.Background(), 0, x.Stamp, c)
		} else {
			r := store.Round{Extend: x.Round.Extend, Claim: x.Round.Claim, Lease: x.Round.Lease, MaxCrashes: x.Round.MaxCrashes, Worker: x.Round.Worker, About: x.Round.About, Leave: x.Round.Leave}
			for i, z := range x.Round.Reports {
				r.Reports = append(r.Reports, store.Report{Lease: z.Lease, End: z.End, Due: z.Due, Text: z.Text, Keep: z.Keep, Result: z.Result, Next: x.Whens[i].store()})
			}
			y.Answer, err = st.Do(context.Background(), 0, x.Stamp, r)
		}
		if err != nil {
			y.Err = err.Error()
			for i, e := range known {
				if errors.Is(err, e) {
					y.Is = append(y.Is, i)
				}
			}
		}
		if err := out.Encode(&y); err != nil {
			return err
		}
	}
}

// A twoProcesses is a Store in this process and one in another process. They take turns
// to carry out commands and rounds.
type twoProcesses struct {
	*sqlitestore.Store
	clk *timertest.Clock
	cmd *exec.Cmd

	mu  sync.Mutex
	n   int
	in  io.WriteCloser
	out *gob.Encoder
	ans *gob.Decoder
}

func newTwoProcesses(t *testing.T, path string, clk *timertest.Clock) *twoProcesses {
	st, err := sqlitestore.Open(path, sqlitestore.WithClock(clk), sqlitestore.WithSyncInterval(time.Minute))
	require.NoError(t, err)
	p := &twoProcesses{Store: st, clk: clk, cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), "TICKLESS_CHILD=serve", "TICKLESS_FILE="+path)
	p.cmd.Stderr = os.Stderr
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.out, p.ans = gob.NewEncoder(p.in), gob.NewDecoder(out)
	require.NoError(t, p.cmd.Start())
	return p
}

func (p *twoProcesses) close(t *testing.T) {
	require.NoError(t, p.in.Close())
	require.NoError(t, p.cmd.Wait())
	_, err := p.Verify(context.Background())
	require.NoError(t, err)
	require.NoError(t, p.Close())
}

// remote sends the request to the other process if it is that process's turn.
func (p *twoProcesses) remote(ctx context.Context, x request) (y response, done bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n++; p.n%2 == 0 || ctx.Err() != nil {
		return y, false, nil
	}
	x.Now, x.Wall = p.clk.Now(), p.clk.Wall()
	if err := p.out.Encode(&x); err != nil {
		return y, false, nil // closed in this process
	}
	if err := p.ans.Decode(&y); err != nil {
		return y, true, err
	}
	if y.Err != "" {
		return y, true, &remoteError{y.Err, y.Is}
	}
	return y, true, nil
}

func (p *twoProcesses) Change(ctx context.Context, shard int, s store.Stamp, c store.Command) ([]store.Outcome, error) {
	x := request{Change: true, Stamp: s, Command: command{Op: c.Op, Keep: c.Keep}}
	for _, z := range c.Items {
		x.Command.Items = append(x.Command.Items, item{z.ID, z.Generation, z.Note, z.Task, z.Entry, z.Limit, z.Next, z.Anew, z.Paused, z.Version, z.IfVersion})
		x.Whens = append(x.Whens, whenOf(z.When))
	}
	if y, done, err := p.remote(ctx, x); done {
		return y.Outcomes, err
	}
	return p.Store.Change(ctx, shard, s, c)
}

func (p *twoProcesses) Do(ctx context.Context, shard int, s store.Stamp, r store.Round) (store.Answer, error) {
	x := request{Stamp: s, Round: round{nil, r.Extend, r.Claim, r.Lease, r.MaxCrashes, r.Worker, r.About, r.Leave}}
	for _, z := range r.Reports {
		x.Round.Reports = append(x.Round.Reports, report{z.Lease, z.End, z.Due, z.Text, z.Keep, z.Result})
		x.Whens = append(x.Whens, whenOf(z.Next))
	}
	if y, done, err := p.remote(ctx, x); done {
		return y.Answer, err
	}
	return p.Store.Do(ctx, shard, s, r)
}

// TestStore_TwoProcesses runs storetest with two processes that take turns to carry out
// commands and rounds. Neither may rely on data that is not in the file.
func TestStore_TwoProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("it repeats TestStore, which is slow with the race detector")
	}
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		clk := timertest.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		path := filepath.Join(t.TempDir(), "tasks.db")
		now := newTwoProcesses(t, path, clk)
		t.Cleanup(func() { now.close(t) })
		return storetest.Subject{
			Store: now, Advance: clk.Advance, Steps: steps(800), Twin: true,
			SetWall: func(d time.Duration) { clk.SetWall(clk.Wall().Add(d)) },
			Reopen: func(t *testing.T) store.Store {
				now.close(t)
				now = newTwoProcesses(t, path, clk)
				return now
			},
		}
	})
}
