package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/tickless/tickless/durable"
	"github.com/tickless/tickless/durable/memstore"
)

// serve sends a request, and checks that the answer is JSON and not the service's own fault.
func serve(t *testing.T, a *API, method, target string, body []byte) (status int, answer []byte) {
	t.Helper()
	r := httptest.NewRequest(method, "/", bytes.NewReader(body))
	var err error
	if r.URL, err = url.ParseRequestURI(target); err != nil {
		t.Skip()
	}
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	if w.Code >= 500 || w.Body.Len() > 0 && w.Code != http.StatusMovedPermanently && w.Code != http.StatusTemporaryRedirect && !json.Valid(w.Body.Bytes()) {
		t.Fatalf("%s %s answered %d: %s", method, target, w.Code, w.Body)
	}
	return w.Code, w.Body.Bytes()
}

func newFuzzed(t *testing.T) *API {
	a := New(durable.New(memstore.New()))
	serve(t, a, "PUT", "/v1/tasks/k", []byte(`{"url":"http://me:pw@x.example/?token=h1","delay":"1h","headers":{"Authorization":"h2"},"on_failure":{"url":"http://y.example/"}}`))
	serve(t, a, "PUT", "/v1/tasks/daily", []byte(`{"url":"http://x.example/","cron":"0 9 * * *","zone":"Europe/Berlin"}`))
	return a
}

var fuzzSeeds = []string{future, `{"url":"http://x/","cron":"* * * * *","zone":"TZ=0"}`, `{"url":"http://\xff"}`, `{"url":"http://x/?key=••••"}`,
	`{"url":"http://x/","at":"9999-12-31T23:59:59Z"}`, `{"url":"http://x/","headers":{"a\r\nb":"c"}}`, `{"url":"http://x/","backoff":{"min":"1ns","max":"9e99h"}}`,
	`{"url":"http://x/","every":"1ns"}`, `{"url":"http://x/","on_success":{"url":"http://x/","on_failure":{}}}`, `{"url":"http://x/","keep":{"runs":-1,"for":"1h"}}`, `null`, `[]`, `{"paused":1}`}

// What a PUT accepts can be read, and put again as it was shown, unless a part of it is dots.
func FuzzAPI_Put(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s), "k")
		f.Add([]byte(s), "\x00/..")
	}
	f.Fuzz(func(t *testing.T, body []byte, key string) {
		a := newFuzzed(t)
		path := "/v1/tasks/" + url.PathEscape("new"+key)
		if status, _ := serve(t, a, "PUT", path, body); status != http.StatusCreated {
			return
		}
		status, answer := serve(t, a, "GET", path, nil)
		var shown Task
		if status != http.StatusOK || json.Unmarshal(answer, &shown) != nil || shown.Key != "new"+key {
			t.Fatalf("GET answered %d: %s", status, answer)
		}
		again, err := json.Marshal(shown.Request())
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := serve(t, a, "PUT", path, again); status != http.StatusOK && !strings.Contains(string(again), mask) {
			t.Fatalf("the PUT of what was shown, %s, answered %d: %s", again, status, answer)
		}
		serve(t, a, "DELETE", path, nil)
	})
}

// A POST of one or many tasks has one result for each, and each error its pointer.
func FuzzAPI_Post(f *testing.F) {
	for _, s := range fuzzSeeds {
		f.Add([]byte(s))
		f.Add([]byte(`{"tasks":[` + s + "," + future + `]}`))
	}
	f.Add([]byte(`{"tasks":{},"Tasks":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		status, answer := serve(t, newFuzzed(t), "POST", "/v1/tasks", body)
		var sent struct{ Tasks []json.RawMessage }
		var got struct{ Tasks []batchResult }
		if status != http.StatusOK || json.Unmarshal(body, &sent) != nil || json.Unmarshal(answer, &got) != nil {
			return
		}
		if len(got.Tasks) != len(sent.Tasks) {
			t.Fatalf("%d results of %d tasks", len(got.Tasks), len(sent.Tasks))
		}
		for _, x := range got.Tasks {
			if (x.Outcome == "") == (x.Error == nil) || x.Error != nil && (len(x.Error.Errors) == 0 || !strings.HasPrefix(x.Error.Errors[0].Pointer, "/tasks/")) {
				t.Fatalf("result %+v", x)
			}
		}
	})
}

// A PATCH changes no secret that it does not name, and never writes dots.
func FuzzAPI_Patch(f *testing.F) {
	for _, s := range append(fuzzSeeds, `{"delay":"1s"}`, `{"headers":{"Authorization":"••••","X":"1"}}`, `{"url":"http://••••@x.example/?token=••••"}`, `{"cron":null,"every":"1h"}`, `{"body_base64":"AA=="}`) {
		f.Add([]byte(s), true)
		f.Add([]byte(s), false)
	}
	f.Fuzz(func(t *testing.T, body []byte, repeats bool) {
		a, key := newFuzzed(t), "k"
		if repeats {
			key = "daily"
		}
		serve(t, a, "PATCH", "/v1/tasks/"+key, body)
		info, err := a.client.Get(t.Context(), key)
		if err != nil {
			return
		}
		x := TaskOf(&info)
		if strings.Contains(x.URL, mask) || x.Headers["Authorization"] == mask {
			t.Fatalf("stored %+v", x)
		}
		if x.URL != "http://me:pw@x.example/?token=h1" && !repeats && !strings.Contains(strings.ToLower(string(body)), "url") {
			t.Fatalf("the URL is %s after %s", x.URL, body)
		}
	})
}

// What a queue accepts can be read.
func FuzzAPI_Queue(f *testing.F) {
	for _, s := range []string{`{}`, `{"concurrency":1,"rate":0.5,"by_group":{"rate":1e-300}}`, `{"paused":true,"note":"a\u0000"}`, `{"rate":1e400}`, `{"concurrency":-1}`, `{"rate":1e308}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a := newFuzzed(t)
		if status, _ := serve(t, a, "PUT", "/v1/queues/http", body); status != http.StatusOK {
			return
		}
		_, answer := serve(t, a, "GET", "/v1/queues/http", nil)
		var q Queue
		if err := json.Unmarshal(answer, &q); err != nil || q.Queue != "http" {
			t.Fatalf("%v: %s", err, answer)
		}
	})
}

// Filters of bulk commands and of lists, and cursors, are refused or work; a list that goes on ends.
func FuzzAPI_Filters(f *testing.F) {
	for _, s := range []string{`{"prefix":"k","limit":1}`, `{"state":"dead","limit":10000}`, `{"due_before":"0001-01-01T00:00:00Z","limit":1}`, `{"group":"g","error":"e","limit":2}`, `{"limit":1}`, `{"state":5}`} {
		f.Add([]byte(s), "state=pending&limit=1", "")
		f.Add([]byte(s), "prefix=%00&error=a", "MSAwIGs")
		f.Add([]byte(s), "due_before=noon&limit=1001", "MSAtMSBr")
	}
	f.Fuzz(func(t *testing.T, body []byte, query, cursor string) {
		a := newFuzzed(t)
		for _, path := range []string{"/v1/tasks", "/v1/runs", "/v1/upcoming"} {
			next := cursor
			for page := 0; ; page++ {
				target := path + "?" + query
				if next != "" {
					target += "&cursor=" + url.QueryEscape(next)
				}
				status, answer := serve(t, a, "GET", target, nil)
				var x struct{ Cursor string }
				if status != http.StatusOK || json.Unmarshal(answer, &x) != nil || x.Cursor == "" {
					break
				}
				if next = x.Cursor; page > 10 {
					t.Fatalf("%s has no end", target)
				}
			}
		}
		for _, action := range []string{"requeue", "purge", "cancel"} {
			serve(t, a, "POST", "/v1/tasks/"+action, body)
		}
	})
}
