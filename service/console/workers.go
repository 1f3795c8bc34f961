package console

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tickless/tickless/service/api"
)

type workerRow struct {
	ID, Name, State, Started, Contact, Version, Places string
	Queues                                             []string
	Running                                            []runningRow
	More                                               int // running tasks that are not shown
}

type runningRow struct{ Name, Path, Since, Worker string }

type workersPage struct {
	layout
	Workers []workerRow
}

// maxRunning is how many running tasks of a worker its row shows, the longest first.
const maxRunning = 10

func (c *Console) workers(w http.ResponseWriter, r *http.Request) error {
	p := workersPage{layout: c.layout(r, "Workers", "/workers")}
	workers, err := c.api.Workers(r.Context())
	if err != nil {
		return err
	}
	for i := range workers {
		p.Workers = append(p.Workers, rowOfWorker(&workers[i]))
	}
	return c.render(w, http.StatusOK, "workers", p)
}

func rowOfWorker(x *api.Worker) workerRow {
	row := workerRow{ID: x.ID, Name: strings.TrimSpace(fmt.Sprintf("%s %s", x.Name, x.Host)), State: "running", Version: x.Version,
		Contact: fromNow(x.Contact), Places: fmt.Sprintf("%d of %d", len(x.Running), x.Places)}
	if x.PID != 0 {
		row.Name += fmt.Sprintf(" (process %d)", x.PID)
	}
	if !x.Started.IsZero() {
		row.Started = formatTime(x.Started)
	}
	if x.Lost {
		row.State = "lost"
	}
	for _, q := range x.Queues {
		text := fmt.Sprintf("%s: %d", q.Queue, q.Running)
		if q.Places > 0 {
			text += fmt.Sprintf(" of %d", q.Places)
		}
		if q.Rate > 0 {
			text += fmt.Sprintf(", %g a second", q.Rate)
		}
		row.Queues = append(row.Queues, text)
	}
	row.More = max(0, len(x.Running)-maxRunning)
	for i := range x.Running[:len(x.Running)-row.More] {
		row.Running = append(row.Running, rowOfRunning(&x.Running[i]))
	}
	return row
}

func rowOfRunning(t *api.RunningTask) runningRow {
	return runningRow{shownID(t.Key), pathOf(t.Key), fromNow(t.Since), t.Worker}
}

// A reasonRow is a reason for which a task waits.
type reasonRow struct {
	Text, Note, AsOf string
	Holders          []runningRow
}

func rowsOfReasons(e *api.Explanation) (rows []reasonRow) {
	for _, r := range e.Reasons {
		row := reasonRow{Text: strings.ToUpper(r.Text[:1]) + r.Text[1:] + ".", Note: r.Note}
		if !r.AsOf.IsZero() {
			row.AsOf = "As of " + formatTime(r.AsOf) + ", when the worker was last heard."
		}
		for i := range r.Holders {
			row.Holders = append(row.Holders, rowOfRunning(&r.Holders[i]))
		}
		rows = append(rows, row)
	}
	return rows
}
