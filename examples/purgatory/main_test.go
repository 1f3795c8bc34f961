package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/timer"
)

func TestLongPolling(t *testing.T) {
	s := timer.New(timer.WithName("test"))
	defer s.Close()
	server := httptest.NewServer(newBroker(s, time.Minute))
	defer server.Close()

	answer := make(chan string)
	go func() { answer <- get(t, server.URL+"/orders?from=1") }()
	produce := func(message string) {
		resp, err := http.Post(server.URL+"/orders", "text/plain", strings.NewReader(message))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
	produce("one book") // too little for the fetch
	produce("two books")
	require.Equal(t, "[\"two books\"]\n", <-answer)
	require.Equal(t, "[\"one book\",\"two books\"]\n", get(t, server.URL+"/orders?from=0"))
	require.Zero(t, s.Len(), "a timeout is left")
}

func TestLongPolling_NothingComes(t *testing.T) {
	s := timer.New()
	defer s.Close()
	server := httptest.NewServer(newBroker(s, 20*time.Millisecond))
	defer server.Close()
	begin := time.Now()
	require.Equal(t, "[]\n", get(t, server.URL+"/orders?from=0"))
	require.GreaterOrEqual(t, time.Since(begin), 20*time.Millisecond)
}

func get(t *testing.T, url string) string {
	resp, err := http.Get(url)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}
