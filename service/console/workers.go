package console

import (
	"net/http"

	"github.com/tickless/tickless/service/api"
)

type workersPage struct {
	layout
	Workers []api.Worker
}

func (c *Console) workers(w http.ResponseWriter, r *http.Request) error {
	workers, err := c.api.Workers(r.Context())
	if err != nil {
		return err
	}
	return c.render(w, http.StatusOK, "workers", workersPage{c.layout(r, "Workers", "/workers"), workers})
}
