package api_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/service/api"
)

// A PATCH that gives no time keeps the task's: also of a paused task, of one whose repetition it
// removes, and if it says null of fields that the task does not have.
func TestAPI_PatchKeepsTheTime(t *testing.T) {
	for _, x := range []struct{ task, patch string }{
		{`"delay":"1h"`, `{"body":"x"}`},
		{`"delay":"1h"`, `{"at":null}`},
		{`"delay":"1h"`, `{"delay":null,"at":null,"cron":null,"zone":null,"every":null,"paused":null}`},
		{`"delay":"1h","paused":true`, `{"body":"x"}`},
		{`"every":"1h"`, `{"every":null}`},
		{`"every":"30s"`, `{"every":null}`}, // it is due
		{`"every":"1h","paused":true`, `{"every":null}`},
		{`"cron":"0 9 * * *","zone":"Europe/Berlin"`, `{"cron":null}`},
		{`"cron":"0 9 * * *","zone":"Europe/Berlin"`, `{"cron":null,"zone":null}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := durable.New(memstore.New())
			send := senderTo(api.New(client))
			send("PUT", "/v1/tasks/k", `{"url":"http://x.example/",`+x.task+`}`)
			before, err := client.Get(t.Context(), "k")
			require.NoError(t, err)
			time.Sleep(time.Minute)
			status, answer := send("PATCH", "/v1/tasks/k", x.patch)
			require.Equal(t, 200, status, answer)
			after, err := client.Get(t.Context(), "k")
			require.NoError(t, err)
			require.Equal(t, before.At, after.At, x)
			require.Equal(t, before.Paused, after.Paused, x)
			require.Zero(t, after.Task.Every, x)
			require.Empty(t, after.Task.Cron+after.Task.Zone, x)
			shown := api.TaskOf(&after).Request() // for the form of the page
			require.True(t, after.At.Equal(*shown.At), x)
		})
	}
}

// A PATCH may remove the repetition and give a time.
func TestAPI_PatchRepetitionToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := durable.New(memstore.New())
		send := senderTo(api.New(client))
		send("PUT", "/v1/tasks/k", `{"url":"http://x.example/","every":"1h"}`)
		status, answer := send("PATCH", "/v1/tasks/k", `{"every":null,"delay":"3h"}`)
		require.Equal(t, 200, status, answer)
		info, err := client.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Zero(t, info.Task.Every)
		require.Equal(t, 3*time.Hour, time.Until(info.At))
	})
}

// A PATCH removes what is null, as RFC 7396 says: a pause, too.
func TestAPI_PatchNull(t *testing.T) {
	client := durable.New(memstore.New())
	send := senderTo(api.New(client, api.WithRetention(durable.Retention{})))
	send("PUT", "/v1/tasks/k", `{"url":"http://x.example/","method":"PUT","headers":{"A":"1"},"body":"x","delay":"1h","group":"g","timeout":"5s","max_attempts":2,
		"backoff":{"min":"1s","max":"2s"},"expires_in":"1h","keep":{"runs":1},"unique_for":"1h","paused":true,"on_success":{"url":"http://x.example/"},"on_failure":{"url":"http://x.example/"}}`)
	before, err := client.Get(t.Context(), "k")
	require.NoError(t, err)
	status, answer := send("PATCH", "/v1/tasks/k", `{"method":null,"headers":null,"body":null,"group":null,"timeout":null,"max_attempts":null,
		"backoff":null,"expires_in":null,"keep":null,"unique_for":null,"paused":null,"on_success":null,"on_failure":null}`)
	require.Equal(t, 200, status, answer)
	info, err := client.Get(t.Context(), "k")
	require.NoError(t, err)
	task := api.TaskOf(&info)
	task.Due = nil
	got, err := json.Marshal(task)
	require.NoError(t, err)
	require.JSONEq(t, `{"key":"k","url":"http://x.example/","method":"POST","queue":"http","state":"pending"}`, string(got))
	require.Equal(t, before.At, info.At)
}
