package serve

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// operations returns the statuses that openapi.json documents, by "METHOD path".
func (n *node) operations() map[string]map[int]bool {
	b, err := json.Marshal(n.want(200, "GET", "/openapi.json", nil))
	var doc struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	if err != nil || json.Unmarshal(b, &doc) != nil {
		n.Fatal(err)
	}
	all := map[string]map[int]bool{}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			statuses := map[int]bool{}
			for s := range o.Responses {
				status, _ := strconv.Atoi(s)
				statuses[status] = true
			}
			all[strings.ToUpper(method)+" "+path] = statuses
		}
	}
	return all
}

// isOf reports whether a path is one of an operation, such as "/v1/tasks/{key}".
func isOf(path, template string) bool {
	path, _, _ = strings.Cut(path, "?")
	a, b := strings.Split(path, "/"), strings.Split(template, "/")
	for i := range a {
		if len(a) != len(b) || a[i] != b[i] && !strings.HasPrefix(b[i], "{") {
			return false
		}
	}
	return true
}

// Each operation gives each documented answer, and no other, on each store. Only 503 needs a
// store that fails: package api tests it.
func answers(t *testing.T, flags []string) {
	r := newReceiver(t)
	n := startNode(t, flags...)
	left := n.operations()
	call := func(status int, method, path string, body any, headers ...string) http.Header {
		t.Helper()
		got, header, answer := n.call(method, path, body, headers...)
		if got != status {
			t.Fatalf("%s %s answered %d, want %d: %v", method, path, got, status, answer)
		}
		for operation, statuses := range left {
			if m, template, _ := strings.Cut(operation, " "); m == method && isOf(path, template) {
				delete(statuses, got)
			}
		}
		return header
	}
	future, large := object{"url": r.URL, "delay": "1h"}, object{"url": strings.Repeat("x", 200<<10)}
	wrong := func(method, path string, good object) {
		t.Helper()
		call(415, method, path, good, "Content-Type", "text/plain")
		call(400, method, path, []int{1})
		call(413, method, path, large)
		call(422, method, path, object{"what": 1})
	}
	wrong("PUT", "/v1/tasks/k", future)
	call(201, "PUT", "/v1/tasks/k", future)
	tag := call(200, "GET", "/v1/tasks/k", nil).Get("ETag")
	call(200, "PUT", "/v1/tasks/k", future, "If-Match", tag)
	call(412, "PUT", "/v1/tasks/k", future, "If-Match", tag)
	call(404, "GET", "/v1/tasks/none", nil)
	wrong("PATCH", "/v1/tasks/k", object{})
	call(200, "PATCH", "/v1/tasks/k", object{"method": "PUT"}, "Content-Type", "application/merge-patch+json")
	call(412, "PATCH", "/v1/tasks/k", object{"method": "PUT"}, "If-Match", tag)
	call(404, "PATCH", "/v1/tasks/none", object{})
	call(412, "DELETE", "/v1/tasks/k", nil, "If-Match", tag)
	call(204, "DELETE", "/v1/tasks/k", nil)
	call(404, "DELETE", "/v1/tasks/k", nil)

	release := make(chan struct{})
	r.answerWith(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Tickless-Key") == "dies" {
			http.Error(w, "no", http.StatusNotFound)
			return
		}
		select {
		case <-release:
		case <-req.Context().Done():
		}
	})
	call(201, "PUT", "/v1/tasks/runs", object{"url": r.URL})
	eventually(t, func() bool { return r.count("runs") == 1 })
	call(409, "PATCH", "/v1/tasks/runs", object{"max_attempts": 3})
	call(409, "POST", "/v1/tasks/runs/run", nil)
	call(202, "DELETE", "/v1/tasks/runs", nil)
	close(release)
	call(201, "PUT", "/v1/tasks/dies", object{"url": r.URL})
	eventually(t, func() bool { return n.want(200, "GET", "/v1/tasks/dies", nil)["state"] == "dead" })
	for _, path := range []string{"/v1/tasks/%s/runs", "/v1/tasks/%s/explain"} {
		call(200, "GET", strings.ReplaceAll(path, "%s", "dies"), nil)
		call(404, "GET", strings.ReplaceAll(path, "%s", "none"), nil)
	}
	call(200, "POST", "/v1/tasks/dies/requeue", nil)
	eventually(t, func() bool { return n.want(200, "GET", "/v1/tasks/dies", nil)["state"] == "dead" })
	call(201, "PUT", "/v1/tasks/k", future)
	call(200, "POST", "/v1/tasks/k/run", nil)
	call(404, "POST", "/v1/tasks/none/run", nil)
	call(201, "PUT", "/v1/tasks/later", future)
	call(409, "POST", "/v1/tasks/later/requeue", nil)
	call(404, "POST", "/v1/tasks/none/requeue", nil)

	call(415, "POST", "/v1/tasks", future, "Content-Type", "text/plain")
	call(400, "POST", "/v1/tasks", []int{1})
	call(413, "POST", "/v1/tasks", large)
	call(422, "POST", "/v1/tasks", object{"key": "mine"})
	call(201, "POST", "/v1/tasks", future)
	call(200, "POST", "/v1/tasks", object{"tasks": []object{future}})
	for _, path := range []string{"/v1/tasks", "/v1/runs"} {
		call(200, "GET", path, nil)
		call(400, "GET", path+"?what=1", nil)
		call(422, "GET", path+"?cursor=%21", nil)
	}
	for _, action := range []string{"cancel", "requeue", "purge"} {
		wrong("POST", "/v1/tasks/"+action, object{"prefix": "z", "limit": 1})
		call(200, "POST", "/v1/tasks/"+action, object{"prefix": "z", "limit": 1})
	}
	for path, status := range map[string]int{"stats": 200, "workers": 200, "upcoming?for=2h": 200, "upcoming?for=-1h": 400, "queues": 200, "queues/http": 200, "queues/none": 404} {
		call(status, "GET", "/v1/"+path, nil)
	}
	wrong("PUT", "/v1/queues/http", object{})
	call(200, "PUT", "/v1/queues/http", object{"concurrency": 3})
	call(404, "PUT", "/v1/queues/none", object{})
	call(200, "DELETE", "/v1/queues/http", nil)
	call(404, "DELETE", "/v1/queues/none", nil)
	for operation, statuses := range left {
		delete(statuses, 503)
		if len(statuses) > 0 {
			t.Errorf("%s never answered %v", operation, statuses)
		}
	}
}

// Each operation needs a token, and those that change something one that may.
func TestServe_Tokens(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	const reader, writer = "reader-reader-reader-reader", "writer-writer-writer-writer"
	if err := os.WriteFile(tokens, []byte("# two\nr ro "+reader+"\nw rw "+writer+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, "--data", t.TempDir(), "--token-file", tokens)
	n.token = writer
	routes := []string{"GET /metrics", "GET /openapi.json", "POST /tasks/k/cancel", "POST /store/pause", "POST /bulk", "POST /new", "POST /queues/http/pause"}
	for operation := range n.operations() {
		routes = append(routes, strings.NewReplacer("{key}", "k", "{queue}", "http").Replace(operation))
	}
	for _, route := range routes {
		method, path, _ := strings.Cut(route, " ")
		n.token = ""
		n.want(401, method, path, nil)
		n.token = "wrong-wrong-wrong-wrong-wrong"
		if status, _, _ := n.call(method, path, nil); status != 401 && status != 429 {
			t.Errorf("%s with a wrong token: %d", route, status)
		}
		n.token = reader
		if status, _, _ := n.call(method, path, nil); (status == 403) != (method != "GET") || status == 401 {
			t.Errorf("%s with a token that may read: %d", route, status)
		}
		n.token = writer
		if status, _, _ := n.call(method, path, nil); status == 401 || status == 403 || status == 429 {
			t.Errorf("%s with a token that may write: %d", route, status)
		}
	}
	n.token = writer
	n.want(201, "PUT", "/v1/tasks/audited", object{"url": "http://127.0.0.1:9", "delay": "1h"})
	n.want(200, "GET", "/healthz", nil)
	n.stop()
	if !strings.Contains(n.stderr.String(), "token=w") || strings.Contains(n.stderr.String(), writer) {
		t.Errorf("the log is %s", n.stderr)
	}
}

// A token that may only read sees no secret of a task, on any page and in no answer.
func TestServe_SecretsAreDots(t *testing.T) {
	r := newReceiver(t)
	r.answerWith(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusNotFound) })
	n := startNode(t, "--data", t.TempDir())
	address := strings.Replace(r.URL, "http://", "http://me:hush1@", 1) + "/a?access_token=hush2&x=1"
	task := object{"url": address, "headers": object{"Authorization": "hush3"}, "delay": "1h", "on_failure": object{"url": address, "headers": object{"Cookie": "hush3"}}}
	n.want(201, "PUT", "/v1/tasks/waits", task)
	n.want(201, "PUT", "/v1/tasks/daily", object{"url": address, "cron": "@daily"})
	delete(task, "delay")
	n.want(201, "PUT", "/v1/tasks/dies", task)
	eventually(t, func() bool { return len(n.want(200, "GET", "/v1/tasks?state=dead", nil)["tasks"].([]any)) == 2 })
	for _, path := range []string{"/v1/tasks", "/v1/tasks/waits", "/v1/tasks/dies", "/v1/tasks/dies/runs", "/v1/tasks/dies/explain", "/v1/runs", "/v1/upcoming?for=48h", "/metrics",
		"/", "/tasks", "/tasks?state=dead", "/tasks?state=done", "/tasks/waits", "/tasks/dies", "/tasks/daily", "/repeating", "/dead", "/workers"} {
		resp, err := http.Get(n.url + path)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := resp.Write(&text); err != nil || resp.StatusCode != 200 {
			t.Fatalf("%s: %d %v", path, resp.StatusCode, err)
		}
		if strings.Contains(text.String(), "hush") {
			t.Errorf("%s shows a secret:\n%s", path, text.String())
		}
	}
	n.stop()
	if strings.Contains(n.stderr.String(), "hush") {
		t.Errorf("the log is %s", n.stderr)
	}
}
