package callbacks

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/callback"
)

// receive is the HTTP server's handler.
func (r *run) receive(w http.ResponseWriter, req *http.Request) {
	now := time.Now().Add(r.offset)
	body, err := callback.Verify(req, callback.DefaultTolerance, r.order.Secret)
	i, err2 := strconv.Atoi(string(body))
	due, err3 := time.Parse(time.RFC3339Nano, req.Header.Get("Tickless-Due"))
	if errors.Join(err, err2, err3) != nil || i < 0 || i >= r.config.Tasks {
		r.refused.Inc()
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.ledger.arrive(i, now, due)
	r.handling.Inc()
	time.Sleep(r.config.Handling)
	r.handling.Dec()
}
