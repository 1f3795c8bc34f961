package main

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/timer"
)

// The page shows the load, and about nine of ten requests are answered in time.
func TestDebugPage_ShowsTheLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := timer.New(timer.WithName("requests"))
		defer s.Close()
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() { sendRequests(s, 1000, stop); close(ended) }()
		time.Sleep(20 * time.Second)
		close(stop)
		<-ended
		w := httptest.NewRecorder()
		debugpage.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/?format=json", nil))
		var page struct{ Schedulers []struct{ Name string } }
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &page))
		require.Equal(t, "requests", page.Schedulers[0].Name)
		require.Greater(t, s.Stats().Stopped, uint64(8_000))
	})
}
