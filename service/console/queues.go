package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tickless/tickless/service/api"
)

type queueRow struct {
	Name, Path, Limits, Concurrency, Rate, Note string
	Paused                                      bool
}

type queuesPage struct {
	layout
	QueueRows []queueRow
}

func (c *Console) showQueues(w http.ResponseWriter, r *http.Request) error {
	p := queuesPage{layout: c.layout(r, "Queues", "/queues")}
	queues, err := c.api.Queues(r.Context())
	if err != nil {
		return err
	}
	for _, q := range queues {
		row := queueRow{Name: q.Queue, Path: pathOf(q.Queue), Paused: q.Paused, Note: q.Note}
		var limits []string
		if q.Concurrency > 0 {
			row.Concurrency = strconv.Itoa(q.Concurrency)
			limits = append(limits, row.Concurrency+" at a time")
		}
		if q.Rate > 0 {
			row.Rate = strconv.FormatFloat(q.Rate, 'g', -1, 64)
			limits = append(limits, row.Rate+" a second")
		}
		row.Limits = strings.Join(limits, ", ")
		if row.Limits == "" {
			row.Limits = "none"
		}
		p.QueueRows = append(p.QueueRows, row)
	}
	return c.render(w, http.StatusOK, "queues", p)
}

func (c *Console) changeQueue(w http.ResponseWriter, r *http.Request) error {
	name, action := r.PathValue("queue"), r.PathValue("action")
	q, err := c.api.QueueByName(r.Context(), name)
	if err != nil {
		return err
	}
	switch action {
	case "limit":
		if q.Concurrency, err = atoi(r.PostForm.Get("concurrency")); err == nil {
			q.Rate, err = atof(r.PostForm.Get("rate"))
		}
		if err != nil {
			return api.Problemf(http.StatusUnprocessableEntity, "A limit is a number that is not negative.")
		}
	case "pause":
		q.Paused, q.Note = true, strings.TrimSpace(r.PostForm.Get("note"))
	case "resume":
		q.Paused, q.Note = false, ""
	default:
		return api.Problemf(http.StatusNotFound, "There is no such action.")
	}
	if err := c.api.SetQueue(r.Context(), q); err != nil {
		return err
	}
	c.api.Audit(r.Context(), "queue "+action, name, 0)
	return c.back(w, r, "/queues?note=done")
}

func atoi(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.Atoi(s)
}

func atof(s string) (float64, error) {
	if s == "" {
		return 0, nil
	}
	return strconv.ParseFloat(s, 64)
}
