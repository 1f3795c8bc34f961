package server

import (
	"net/http"
	"time"
)

// Handle answers, or gives up.
func Handle(w http.ResponseWriter, r *http.Request) {
	defer time.AfterFunc(time.Minute, func() { http.NewResponseController(w).Flush() }).Stop()
	w.WriteHeader(http.StatusNoContent)
}
