package browsertest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

var program struct {
	sync.Once
	path string
	err  error
}

// buildProgram builds the command once, and returns its path.
func buildProgram(t *testing.T) string {
	t.Helper()
	program.Do(func() {
		program.path = filepath.Join(os.TempDir(), fmt.Sprint("tickless-", os.Getpid()))
		build := exec.Command("go", "build", "-o", program.path, ".")
		build.Dir = filepath.Join("..", "..", "cmd", "tickless")
		build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
		out, err := build.CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	require.NoError(t, program.err)
	return program.path
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.end != nil {
		browser.end()
	}
	if program.path != "" {
		_ = os.Remove(program.path)
	}
	os.Exit(code)
}

// newConsole starts `tickless serve` with tasks in every state, and returns its URL.
func newConsole(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	dir := t.TempDir()
	slow := make(chan struct{})
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/bad"):
			http.Error(w, "<script>alert('no such order')</script>", http.StatusUnprocessableEntity)
		case r.URL.Path == "/slow":
			<-slow
		default:
			fmt.Fprint(w, "thank you")
		}
	}))
	t.Cleanup(receiver.Close)
	t.Cleanup(func() { close(slow) })

	service := exec.Command(buildProgram(t), "serve", "--listen", "127.0.0.1:0", "--allow", "127.0.0.0/8", "--data", filepath.Join(dir, "data"))
	stdout, err := service.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	t.Cleanup(func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
	send := func(method, key, task string, status int) {
		req, err := http.NewRequest(method, url+"/v1/tasks/"+key, strings.NewReader(strings.ReplaceAll(task, "RECEIVER", receiver.URL)))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		require.Equal(t, status, resp.StatusCode, "%s: %s", key, text)
	}
	put := func(key, task string) { send(http.MethodPut, key, task, http.StatusCreated) }
	put("report", `{"url":"RECEIVER/report","cron":"0 9 * * 1-5","zone":"Europe/Berlin"}`)
	put("cleanup", `{"url":"RECEIVER/cleanup","every":"6h","paused":true}`)
	for i := range 60 {
		put(fmt.Sprint("order-", i), fmt.Sprintf(`{"url":"RECEIVER/expire","body":"{\"order\":%d}","headers":{"Authorization":"Bearer hush-hush"},"delay":"%dm"}`, i, 30+i))
	}
	put("import", `{"url":"RECEIVER/slow"}`)
	put("greeting", `{"url":"RECEIVER/hello"}`)
	for i := range 7 {
		put(fmt.Sprint("payment-", i), `{"url":"RECEIVER/bad/`+strings.Repeat("x", 20*i)+`"}`)
	}
	for { // until the calls have been made
		resp, err := http.Get(url + "/v1/stats")
		require.NoError(t, err)
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if strings.Contains(string(text), `"dead":7`) && strings.Contains(string(text), `"running":1`) && strings.Contains(string(text), `"done":1`) {
			return url
		}
		time.Sleep(10 * time.Millisecond)
	}
}

var consolePages = map[string]string{"overview": "/", "tasks": "/tasks", "task": "/tasks/order-3", "call": "/tasks/import", "repeating": "/repeating",
	"dead": "/dead", "payment": "/tasks/payment-6", "queues": "/queues", "workers": "/workers", "new": "/new", "done": "/tasks?state=done"}

// Each page of the console fits narrow and wide screens, with and without scripts; its
// controls have names; and no text of a task is markup.
func TestConsole_Pages(t *testing.T) {
	url := newConsole(t)
	for _, script := range []bool{true, false} {
		ctx := newBrowser(t)
		call(t, ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
		for name, path := range consolePages {
			do(t, ctx, chromedp.Navigate(url+path), chromedp.WaitVisible(chromedp.CSS(`main h1`)))
			for _, width := range []int64{390, 1100} {
				do(t, ctx, chromedp.EmulateViewport(width, 900))
				over := get(t, ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`))
				require.LessOrEqual(t, over, 0, "%s at %d: pixels that the page is too wide", name, width)
			}
			require.Zero(t, get(t, ctx, chromedp.Evaluate[int](`document.querySelectorAll("main script").length`)), name)
			unnamed := get(t, ctx, chromedp.Evaluate[int](`[...document.querySelectorAll("main input:not([type=hidden]), main select, main textarea")].filter(x => !x.labels.length && !x.getAttribute("aria-label")).length`))
			require.Zero(t, unnamed, "%s has fields without a label", name)
			require.NotContains(t, get(t, ctx, chromedp.Text(chromedp.CSS(`main`))), "hush-hush", name)
		}
	}
}

// A person finds the dead letters of an error and calls them again, with a confirmation that
// says how many; and pauses a queue. It works without scripts too.
func TestConsole_Story(t *testing.T) {
	for _, script := range []bool{true, false} {
		url := newConsole(t)
		ctx := newBrowser(t)
		call(t, ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
		main := func() string { return get(t, ctx, chromedp.Text(chromedp.CSS(`main`))) }
		do(t, ctx, chromedp.Navigate(url), chromedp.Click(chromedp.CSS(`nav a[href="/dead"]`)), chromedp.WaitVisible(chromedp.CSS(`main td a`)))
		require.Contains(t, main(), "7")
		do(t, ctx, chromedp.Click(chromedp.CSS(`main td a`)), chromedp.WaitVisible(chromedp.CSS(`form.filter`)))
		require.Contains(t, main(), "payment-0")
		do(t, ctx, chromedp.Click(chromedp.CSS(`button[name=all][value="1"]`)), chromedp.WaitVisible(chromedp.CSS(`form[action="/bulk"]`)))
		require.Contains(t, main(), "7")
		do(t, ctx, chromedp.Click(chromedp.CSS(`form[action="/bulk"] button`)), chromedp.WaitVisible(chromedp.CSS(`p[role=status]`)))
		for !strings.Contains(main(), "7") || strings.Contains(main(), "goes on") {
			time.Sleep(50 * time.Millisecond)
			do(t, ctx, chromedp.Reload())
		}

		do(t, ctx, chromedp.Click(chromedp.CSS(`nav a[href="/queues"]`)), chromedp.WaitVisible(chromedp.CSS(`input[name=note]`)),
			chromedp.SendKeys(chromedp.CSS(`input[name=note]`), "relay is down"), chromedp.Click(chromedp.CSS(`form[action$="/pause"] button`)),
			chromedp.WaitVisible(chromedp.CSS(`form[action$="/resume"] button`)))
		require.Contains(t, main(), "relay is down")
		do(t, ctx, chromedp.Click(chromedp.CSS(`form[action$="/resume"] button`)), chromedp.WaitVisible(chromedp.CSS(`form[action$="/pause"] button`)))
	}
}

// If SCREENSHOTS names a folder, TestConsole_Screenshots writes screenshots there.
func TestConsole_Screenshots(t *testing.T) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		t.Skip("SCREENSHOTS is not set")
	}
	url := newConsole(t)
	ctx := newBrowser(t)
	for _, width := range []int64{390, 1100} {
		for _, scheme := range []string{"light", "dark"} {
			setScheme(t, ctx, scheme)
			for name, path := range consolePages {
				do(t, ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(url+path), chromedp.WaitVisible(chromedp.CSS(`main h1`)))
				picture := get(t, ctx, chromedp.FullScreenshot(100))
				require.NoError(t, os.WriteFile(fmt.Sprintf("%s/%s-%d-%s.png", folder, name, width, scheme), picture, 0o644))
			}
		}
	}
}

// For scripts/page-picture, TestConsole_Picture writes pictures of the console to the folder
// CONSOLE_PICTURES.
func TestConsole_Picture(t *testing.T) {
	folder := os.Getenv("CONSOLE_PICTURES")
	if folder == "" {
		t.Skip("CONSOLE_PICTURES is not set")
	}
	url := newConsole(t)
	ctx := newBrowser(t)
	for _, scheme := range []string{"light", "dark"} {
		setScheme(t, ctx, scheme)
		do(t, ctx, chromedp.EmulateViewport(960, 560), chromedp.Navigate(url+"/tasks"), chromedp.WaitVisible(chromedp.CSS(`main h1`)))
		require.NoError(t, os.WriteFile(fmt.Sprintf("%s/console-%s.png", folder, scheme), get(t, ctx, chromedp.CaptureScreenshot()), 0o644))
	}
}

func setScheme(t *testing.T, ctx context.Context, scheme string) {
	call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}
