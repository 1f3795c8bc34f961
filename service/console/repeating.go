package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/service/api"
)

// A repeatingRow is a repeating task in its list.
type repeatingRow struct {
	Name, Path, State, Words, Spec, Last string
	Coming, Actions                      []string
}

type repeatingPage struct {
	layout
	Tasks []repeatingRow
	Next  string
}

// coming is how many next runs the page shows.
const coming = 5

// repeating lists the repeating tasks. No index has them, so each page reads many tasks.
func (c *Console) repeating(w http.ResponseWriter, r *http.Request) error {
	p := repeatingPage{layout: c.layout(r, "Repeating tasks", "/repeating")}
	cursor := durable.Cursor(r.URL.Query().Get("cursor"))
	_, err := readTasks(r.Context(), c.client, durable.Filter{State: durable.Pending}, &cursor, time.Now().Add(readTime), func(info *durable.Info) (bool, error) {
		if x := &info.Task; x.Cron == "" && x.Every == 0 && x.Schedule == "" {
			return false, nil
		}
		row, err := c.repeatingRow(r.Context(), info)
		p.Tasks = append(p.Tasks, row)
		return len(p.Tasks) == pageSize, err
	})
	if err != nil {
		return err
	}
	if cursor != "" {
		p.Next = "/repeating?" + url.Values{"cursor": {string(cursor)}}.Encode()
	}
	return c.render(w, http.StatusOK, "repeating", p)
}

func (c *Console) repeatingRow(ctx context.Context, info *durable.Info) (row repeatingRow, err error) {
	t := api.TaskOf(info)
	row = repeatingRow{Name: shownID(info.ID), Path: pathOf(info.ID), State: t.State, Actions: actionsOn(t.State)}
	x := &info.Task
	switch {
	case x.Cron != "":
		row.Words, row.Spec = inWords(x.Cron, x.Zone), x.Cron+" "+x.Zone
	case x.Every > 0:
		row.Words = "every " + x.Every.String()
	default:
		row.Words = "by the program's schedule " + x.Schedule
	}
	if t.Due != nil {
		row.Coming = []string{formatTime(*t.Due)}
		for _, at := range x.NextRuns(info.Due, coming-1) {
			row.Coming = append(row.Coming, formatTime(at))
		}
	}
	runs, err := c.client.Runs(ctx, info.ID)
	if len(runs) > 0 {
		row.Last = formatTime(runs[0].Ended)
		if !runs[0].Done {
			row.Last += " failed"
		}
	}
	return row, err
}
