package durable

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/durable/internal/places"
	"github.com/tickless/tickless/durable/store"
)

// A WorkerInfo describes a Worker that runs, or that has ended without a shutdown.
type WorkerInfo struct {
	// ID names one Run of the Worker. [Info.Worker] of a running task is such an ID.
	ID      string    `json:"id"`
	Name    string    `json:"name,omitempty"` // see WithName
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Started time.Time `json:"started,omitzero"` // when Run was called
	// Version is that of the program: see [WithVersion].
	Version string `json:"version,omitempty"`
	// Contact is when the store last heard of the Worker. On sqlitestore and memstore an
	// idle Worker is silent until a task is due. On other stores it is silent for up to
	// 30 s, or redisstore's WithRecheck if that is longer.
	Contact time.Time `json:"contact"`
	// Lost says that the Worker has ended without a shutdown, or cannot reach the store: its
	// process has ended, it is silent for longer than its leases last, or a lease has ended.
	// A lost Worker is listed for a day.
	Lost bool `json:"lost,omitempty"`

	Places    int             `json:"places"` // see WithConcurrency
	Lease     time.Duration   `json:"lease_ns"`
	Handlers  []WorkerHandler `json:"handlers"`
	Schedules []string        `json:"schedules,omitempty"` // see WithSchedule
	// Running are the tasks that the Worker runs, the longest first.
	Running []WorkerTask `json:"running"`
}

// A WorkerHandler is a handler of a Worker.
type WorkerHandler struct {
	Handler string `json:"handler"`
	Running int    `json:"running"` // how many places it uses
	// Places is how many places it may use, and Rate how many tasks it may start in a
	// second, or 0 for any number.
	Places int     `json:"places"`
	Rate   float64 `json:"rate,omitempty"`
}

// A WorkerTask is a task that a Worker runs.
type WorkerTask struct {
	ID      string    `json:"id"` // see Info.ID
	Handler string    `json:"handler"`
	Since   time.Time `json:"since"` // when it was claimed
	Lease   time.Time `json:"lease"` // when its lease ends, unless the Worker extends it
}

// A workerAbout is what a Worker tells about itself, as JSON in store.Round.About.
type workerAbout struct {
	Name     string                  `json:"name,omitempty"`
	Host     string                  `json:"host,omitempty"`
	PID      int                     `json:"pid"`
	Started  time.Time               `json:"started"`
	Version  string                  `json:"version,omitempty"`
	Places   int                     `json:"places"`
	Handlers map[string]places.Limit `json:"handlers,omitempty"` // those with limits of their own
}

// describe returns what the Worker tells about itself in a Run.
func (w *Worker) describe() string {
	about := workerAbout{Name: w.config.name, PID: os.Getpid(), Started: w.now().UTC(), Version: w.config.version,
		Places: w.config.concurrency, Handlers: make(map[string]places.Limit)}
	about.Host, _ = os.Hostname() // without a name the field is empty
	for name, h := range w.handlers {
		if h.limit != (places.Limit{}) {
			about.Handlers[name] = h.limit
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok && about.Version == "" && info.Main.Version != "(devel)" {
		about.Version = info.Main.Version
	}
	text := about.encode()
	if len(text) > store.MaxAbout {
		about.Handlers = nil
		text = about.encode()
	}
	return text
}

func (a *workerAbout) encode() string {
	b, _ := json.Marshal(a) // all fields can be encoded
	return string(b)
}

// workerID returns the WorkerInfo.ID of a worker's number.
func workerID(number int64) string {
	if number == 0 {
		return ""
	}
	return strconv.FormatInt(number, 36)
}

// Workers returns the store's Workers, sorted by host, process and start. A Worker is
// listed from its first claim until its shutdown. O(n) for n Workers and running tasks.
func (c *Client) Workers(ctx context.Context) ([]WorkerInfo, error) {
	return c.readWorkers(ctx, nil)
}

// readWorkers returns the Workers. It calls visit, if not nil, for each running task.
func (c *Client) readWorkers(ctx context.Context, visit func(*store.Entry)) ([]WorkerInfo, error) {
	now, err := c.latestNow(ctx)
	if err != nil {
		return nil, err
	}
	byNumber := make(map[int64]*WorkerInfo)
	for shard := range c.store.Shards() {
		workers, err := c.store.Workers(ctx, shard)
		if err != nil {
			return nil, clientError(err)
		}
		for i := range workers {
			if x := &workers[i]; x.Number != 0 { // older versions have none
				if byNumber[x.Number] == nil {
					byNumber[x.Number] = newWorkerInfo(x)
				}
				byNumber[x.Number].addShard(x)
			}
		}
	}
	for e, err := range c.listEntries(ctx, store.Filter{State: store.Running}, store.Cursor{}, store.MaxPage, nil) {
		if err != nil {
			return nil, err
		}
		if e.Damaged {
			continue
		}
		if visit != nil {
			visit(&e)
		}
		if w := byNumber[e.Worker]; w != nil {
			w.addTask(&e, now)
		}
	}
	infos := make([]WorkerInfo, 0, len(byNumber))
	for _, w := range byNumber {
		slices.SortStableFunc(w.Running, func(a, b WorkerTask) int { return a.Since.Compare(b.Since) })
		infos = append(infos, *w)
	}
	slices.SortFunc(infos, func(a, b WorkerInfo) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
	})
	return infos, nil
}

func newWorkerInfo(x *store.Worker) *WorkerInfo {
	var about workerAbout
	_ = json.Unmarshal([]byte(x.About), &about) // another program's description may differ
	w := &WorkerInfo{ID: workerID(x.Number), Name: about.Name, Host: about.Host, PID: about.PID, Started: about.Started, Version: about.Version,
		Places: about.Places, Lease: x.Lease, Handlers: []WorkerHandler{}, Schedules: x.Schedules, Running: []WorkerTask{}, Lost: true}
	for _, name := range x.Handlers {
		limit := about.Handlers[name]
		w.Handlers = append(w.Handlers, WorkerHandler{Handler: name, Places: limit.Places, Rate: limit.Rate})
	}
	slices.SortFunc(w.Handlers, func(a, b WorkerHandler) int { return strings.Compare(a.Handler, b.Handler) })
	return w
}

// addShard adds what one shard knows about the Worker.
func (w *WorkerInfo) addShard(x *store.Worker) {
	if seen := x.Seen.Std(); seen.After(w.Contact) {
		w.Contact = seen
	}
	w.Lost = w.Lost && x.Lost
}

func workerTaskOf(e *store.Entry) WorkerTask {
	return WorkerTask{ID: e.ID, Handler: e.Handler, Since: claimedAt(e), Lease: e.At.Std()}
}

func (w *WorkerInfo) addTask(e *store.Entry, now time.Time) {
	x := workerTaskOf(e)
	w.Running = append(w.Running, x)
	w.Lost = w.Lost || !x.Lease.After(now) && w.Contact.Before(x.Lease)
	if i, ok := w.findHandler(e.Handler); ok {
		w.Handlers[i].Running++
	}
}

func (w *WorkerInfo) findHandler(name string) (i int, ok bool) {
	return slices.BinarySearchFunc(w.Handlers, name, func(h WorkerHandler, name string) int { return strings.Compare(h.Handler, name) })
}

// claimedAt returns when a running task was claimed: its token is the store's time of the
// claim, or a little later, unless the clock was set back.
func claimedAt(e *store.Entry) time.Time { return min(store.Time(e.Token), e.At).Std() }
