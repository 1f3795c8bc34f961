package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/callback"
	"github.com/tickless/tickless/durable/memstore"
	"github.com/tickless/tickless/service/api"
)

// newSender returns a function that sends a request to a new API.
func newSender(opts ...api.Option) func(method, path, body string) (status int, answer string) {
	return senderTo(api.New(durable.New(memstore.New()), opts...))
}

// senderTo returns a function that sends a request to an API.
func senderTo(a *api.API) func(method, path, body string) (status int, answer string) {
	return func(method, path, body string) (int, string) {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		a.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
}

// pointers returns the pointers of an answer's errors.
func pointers(t *testing.T, answer string) (list []string) {
	t.Helper()
	var p api.Problem
	require.NoError(t, json.Unmarshal([]byte(answer), &p), answer)
	for _, e := range p.Errors {
		require.NotEmpty(t, e.Detail)
		list = append(list, e.Pointer)
	}
	return list
}

// What would be read as something else is refused, with the field that is wrong, by PUT, by POST of
// one task and of many, and by PATCH: fields that differ from known ones in case, and empty times.
func TestAPI_RefusedFields(t *testing.T) {
	send := newSender()
	status, answer := send("PUT", "/v1/tasks/k", `{"url":"http://example.com/a","delay":"1h","keep":{"runs":5}}`)
	require.Equal(t, http.StatusCreated, status, answer)
	for _, x := range []struct{ fields, pointer string }{
		{`"Delay":"2h"`, "/Delay"},
		{`"URL":"http://example.com/b"`, "/URL"},
		{"\"time\u017fout\":\"1s\"", "/time\u017fout"},
		{"\"\u212aeep\":{}", "/\u212aeep"}, // package json folds the Kelvin sign to k
		{`"Delay":null`, "/Delay"},
		{`"what":null`, "/what"},
		{`"keep":{"Runs":7}`, "/keep/Runs"},
		{`"a/b":1`, "/a~1b"},
		{`"on_success":{"url":"http://example.com","Headers":{"X-Name":"v"}}`, "/on_success/Headers"},
		{`"cron":""`, "/cron"},
		{`"every":"0s"`, "/every"},
		{`"every":""`, "/every"},
		{`"delay":""`, "/delay"},
		{`"at":""`, "/at"},
		{`"on_failure":{"url":"http://example.com","cron":""}`, "/on_failure/cron"},
		{`"method":"get"`, "/method"},
		{`"state":"done"`, "/state"},
		{`"failures":[]`, "/failures"},
		{`"version":"1"`, "/version"},
		{`"on_success":{"url":"http://example.com","group":"g"}`, "/on_success/group"},
		{`"on_success":{"url":"http://example.com","on_failure":{"url":"http://example.com","key":"k"}}`, "/on_success/on_failure/key"},
	} {
		for _, method := range []string{"PUT", "POST", "PATCH"} {
			path, body := "/v1/tasks/k", "{"+x.fields+"}"
			if method != "PATCH" && !strings.Contains(x.fields, `"URL"`) {
				body = `{"url":"http://example.com/b",` + x.fields + "}"
			}
			if method == "POST" {
				path = "/v1/tasks"
			}
			status, answer := send(method, path, body)
			require.Equal(t, http.StatusUnprocessableEntity, status, "%s %s: %s", method, body, answer)
			require.Equal(t, []string{x.pointer}, pointers(t, answer), "%s %s", method, body)
			if method != "POST" {
				continue
			}
			status, answer = send("POST", path, `{"tasks":[`+body+`]}`)
			require.Equal(t, http.StatusOK, status, answer)
			require.Contains(t, answer, `"pointer":"/tasks/0`+x.pointer+`"`, body)
		}
	}
	for path, body := range map[string]string{"PUT /v1/queues/http": `{"Paused":true}`, "POST /v1/tasks/purge": `{"Prefix":"k","limit":1}`, "POST /v1/tasks": `{"Tasks":[]}`} {
		method, path, _ := strings.Cut(path, " ")
		status, answer := send(method, path, body)
		require.Equal(t, http.StatusUnprocessableEntity, status, answer)
	}
	_, answer = send("GET", "/v1/tasks/k", "")
	require.Contains(t, answer, `"url":"http://example.com/a"`, "nothing has changed")
	require.Contains(t, answer, `"state":"pending"`)

	status, answer = send("PATCH", "/v1/tasks/k", `{"delay":null,"every":null,"cron":null,"headers":{"X-Name":"v"},"on_success":{"url":"http://example.com/c","headers":{"X-Name":"w"}}}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Contains(t, answer, `"X-Name":"v"`)
	require.Contains(t, answer, `"X-Name":"w"`)
}

// A key that cannot stand in a path is refused when it is made; every other key can be addressed.
func TestAPI_KeysInPaths(t *testing.T) {
	send := newSender()
	for _, key := range []string{".", "..", "a/../b", "a/.", "./a", "/"} {
		status, answer := send("POST", "/v1/tasks", `{"tasks":[{"key":"`+key+`","url":"http://example.com","delay":"1h"}]}`)
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, answer, `"status":422`, key)
		require.Contains(t, answer, `"pointer":"/tasks/0/key"`, key)
	}
	for _, path := range []string{"%2E", "%2e%2E", "a%2F..%2Fb"} {
		status, answer := send("PUT", "/v1/tasks/"+path, `{"url":"http://example.com","delay":"1h"}`)
		require.Equal(t, http.StatusUnprocessableEntity, status, answer)
		require.Equal(t, []string{"/key"}, pointers(t, answer))
	}
	for key, path := range map[string]string{"a/b": "a%2Fb", "a//b/": "a%2F%2Fb%2F", "...": "...", "a/..b": "a%2F..b", "%2F": "%252F", "?#": "%3F%23", "é ": "%C3%A9%20"} {
		status, answer := send("POST", "/v1/tasks", `{"tasks":[{"key":"`+key+`","url":"http://example.com","delay":"1h"}]}`)
		require.Equal(t, http.StatusOK, status, answer)
		status, answer = send("GET", "/v1/tasks/"+path, "")
		require.Equal(t, http.StatusOK, status, "%s: %s", key, answer)
		status, answer = send("PATCH", "/v1/tasks/"+path, `{"delay":"2h"}`)
		require.Equal(t, http.StatusOK, status, "%s: %s", key, answer)
	}
}

// An address that the calls do not reach is refused when the task is made, in a follow-up too. Names
// are accepted: they may stand for another address when the call is due.
func TestAPI_PrivateAddresses(t *testing.T) {
	calls := callback.New()
	defer calls.Close()
	send := newSender(api.WithCheckURL(calls.CheckURL))
	for body, pointer := range map[string]string{
		`{"url":"http://10.0.0.1/x"}`:                                             "/url",
		`{"url":"https://[::1]:8443"}`:                                            "/url",
		`{"url":"http://[::ffff:169.254.169.254]/meta"}`:                          "/url",
		`{"url":"http://example.com","on_success":{"url":"http://127.0.0.1:80"}}`: "/on_success/url",
	} {
		status, answer := send("PUT", "/v1/tasks/k", body)
		require.Equal(t, http.StatusUnprocessableEntity, status, "%s: %s", body, answer)
		require.Equal(t, []string{pointer}, pointers(t, answer), body)
		require.Contains(t, answer, "--allow")
	}
	for _, body := range []string{`{"url":"http://localhost/","delay":"1h"}`, `{"url":"http://1.1.1.1/","delay":"1h"}`} {
		status, answer := send("PUT", "/v1/tasks/k", body)
		require.Less(t, status, 300, answer)
	}
	status, answer := send("PATCH", "/v1/tasks/k", `{"url":"http://192.168.0.1"}`)
	require.Equal(t, http.StatusUnprocessableEntity, status, answer)
}
