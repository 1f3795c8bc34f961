package console

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/tickless/tickless/service/api"
)

type queuesPage struct {
	layout
	Queues []api.Queue
}

func (c *Console) showQueues(w http.ResponseWriter, r *http.Request) error {
	queues, err := c.api.Queues(r.Context())
	if err != nil {
		return err
	}
	return c.render(w, http.StatusOK, "queues", queuesPage{c.layout(r, "Queues", "/queues"), queues})
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
