package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/service/api"
)

// A run that failed is never shown as done, also when its dead letter is gone, and the filters done and
// failed tell the runs apart.
func TestAPI_FailedIsNotDone(t *testing.T) {
	client := durable.New(memstore.New())
	send := senderTo(api.New(client))
	w := durable.NewWorker(client)
	w.Handle("http", func(_ context.Context, d durable.Delivery) error {
		if d.Key[0] == 'f' {
			return durable.NoRetry(errors.New("out of paper"))
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	var good, failed []string
	for i := range 4 {
		good, failed = append(good, fmt.Sprint("good", i)), append(failed, fmt.Sprint("f", i))
		for _, key := range []string{good[i], failed[i]} {
			status, answer := send("PUT", "/v1/tasks/"+key, `{"url":"http://x.example/"}`)
			require.Equal(t, 201, status, answer)
		}
	}
	for st := (durable.Stats{}); st.Done+st.Died < 8; {
		var err error
		st, err = client.Stats(ctx)
		require.NoError(t, err)
	}
	cancel()
	require.NoError(t, <-ended)

	state := func(path string) string {
		status, answer := send("GET", path, "")
		require.Equal(t, 200, status, answer)
		var x struct{ State string }
		require.NoError(t, json.Unmarshal([]byte(answer), &x))
		return x.State
	}
	require.Equal(t, "dead", state("/v1/tasks/f0"))
	status, _ := send("DELETE", "/v1/tasks/f0", "")
	require.Equal(t, 204, status)
	require.Equal(t, "failed", state("/v1/tasks/f0"))
	require.Equal(t, "failed", state("/v1/tasks/f0/explain"))
	require.Equal(t, "done", state("/v1/tasks/good0"))
	_, answer := send("GET", "/v1/tasks/f0/explain", "")
	require.Contains(t, answer, "and has no dead letter")
	require.Contains(t, answer, "out of paper")
	for _, action := range []string{"run", "requeue"} {
		status, answer := send("POST", "/v1/tasks/f0/"+action, "")
		require.Equal(t, 409, status)
		require.Contains(t, answer, "the task has failed")
	}

	// list returns the keys of all pages, and their states.
	list := func(filter string) (keys []string, states map[string]bool) {
		states = map[string]bool{}
		for cursor, page := "", 0; cursor != "" || page == 0; page++ {
			_, answer := send("GET", "/v1/tasks?limit=3&state="+filter+"&cursor="+cursor, "")
			var x struct {
				Tasks  []api.Task
				Cursor string
			}
			require.NoError(t, json.Unmarshal([]byte(answer), &x))
			require.True(t, len(x.Tasks) == 3 || x.Cursor == "")
			for _, task := range x.Tasks {
				keys, states[task.State] = append(keys, task.Key), true
			}
			cursor = x.Cursor
		}
		return keys, states
	}
	for filter, want := range map[string][]string{"done": good, "failed": failed} {
		keys, states := list(filter)
		require.ElementsMatch(t, want, keys)
		require.Equal(t, map[string]bool{filter: true}, states)
	}
	keys, _ := list("past")
	require.ElementsMatch(t, append(good, failed...), keys)
	for _, x := range []struct{ action, state, want string }{{"requeue", "failed", `{"count":0}`}, {"purge", "failed", `{"count":4}`}, {"purge", "failed", `{"count":0}`}, {"purge", "done", `{"count":4}`}} {
		_, answer := send("POST", "/v1/tasks/"+x.action, `{"state":"`+x.state+`","limit":10}`)
		require.JSONEq(t, x.want, answer, x)
	}
}
