package browsertest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/observe/metric"
	"github.com/tickless/tickless/timer"
)

// browserNames are the programs to look for if BROWSER_BIN is not set.
var browserNames = []string{"chromium", "chromium-browser", "google-chrome", "chrome", "headless-shell"}

// browser is the browser of all tests. Each has a tab of its own, which shares nothing with
// the others.
var browser struct {
	sync.Once
	ctx context.Context
	end context.CancelFunc
	err error
}

var errNoBrowser = fmt.Errorf("none of %s is installed; BROWSER_BIN may name another", strings.Join(browserNames, ", "))

func startBrowser() (ctx context.Context, end context.CancelFunc, err error) {
	path := os.Getenv("BROWSER_BIN")
	for _, name := range browserNames {
		if path == "" {
			path, _ = exec.LookPath(name)
		}
	}
	if path == "" {
		return nil, func() {}, errNoBrowser
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox)
	}
	allocator, cancel := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, _ = chromedp.NewContext(allocator) // ends with the allocator
	end = func() {
		cancel()
		chromedp.FromContext(ctx).Allocator.Wait() // until it has removed its files
	}
	return ctx, end, chromedp.Do(ctx)
}

// newBrowser opens a tab. The test fails if the browser logs errors in it.
//
// Call newPage first, so that the page's server ends after the tab. A tab without
// the server logs errors.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	browser.Do(func() { browser.ctx, browser.end, browser.err = startBrowser() })
	if errors.Is(browser.err, errNoBrowser) && os.Getenv("CI") != "true" && os.Getenv("PAGE_PICTURE") == "" {
		t.Skip(browser.err)
	}
	require.NoError(t, browser.err)
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)

	var mu sync.Mutex
	var complaints []error
	require.NoError(t, chromedp.Do(ctx)) // opens the tab
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if !strings.Contains(e.Entry.URL, "favicon.ico") { // no icon is served at the root
				complaints = append(complaints, fmt.Errorf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
			}
		case *runtime.EventExceptionThrown:
			complaints = append(complaints, errors.New(e.ExceptionDetails.Text))
		}
	}))
	call(t, ctx, log.Enable, cdp.Empty{})
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		require.NoError(t, errors.Join(complaints...), "the browser logged errors")
	})
	return ctx
}

// do runs browser actions. It fails the test after three minutes.
func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	require.NoError(t, chromedp.Do(ctx, steps...))
}

// get runs a browser action and returns its result.
func get[T any](t *testing.T, ctx context.Context, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	require.NoError(t, err)
	return v
}

func call[P, R any](t *testing.T, ctx context.Context, c cdp.Command[P, R], params P) R {
	t.Helper()
	v, err := chromedp.Call(ctx, c, params)
	require.NoError(t, err)
	return v
}

// until is an action that waits until a JavaScript condition is true.
func until(condition string) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (none chromedp.Void, err error) {
		_, err = chromedp.Poll[bool](condition)(ctx, t)
		return none, err
	}
}

func expire() {}

// newPage starts a server with a debug page, which shows two Schedulers under load. It
// returns the server's URL.
func newPage(t *testing.T) string {
	t.Helper()
	var all []*timer.Scheduler
	for _, name := range []string{"requests", "leases & <b>more</b>"} {
		s := timer.New(timer.WithName(name))
		t.Cleanup(func() { require.NoError(t, s.Shutdown(context.Background())) })
		for i := range 10_000 {
			s.AfterFunc(time.Hour+time.Duration(i)*time.Second, expire)
		}
		_ = s.NewTicker(5 * time.Millisecond)
		all = append(all, s)
	}
	server := httptest.NewServer(debugpage.Handler(debugpage.WithSchedulers(all...), debugpage.WithSources(mailer())))
	t.Cleanup(server.Close)
	return server.URL
}

// mailer returns a source of numbers that the page shows below the Schedulers.
func mailer() observe.Source {
	t := metric.NewTable[int]("mail.worker", "worker").Titled("Mail worker").Noted("Latest errors")
	t.Add(metric.UpDownCounter, "places", "{handler}", "How many may run at a time", func(n int) float64 { return float64(n) })
	t.AddParts(metric.Counter, "attempt.claimed", "{attempt}", "handler", "Attempts started", func(n int, yield func(string, float64)) {
		yield("remind", float64(n))
	})
	return metric.One(t.Thing(), metric.Object{
		Name: "mailer", ID: "mailer", Read: func() any { return 256 },
		Notes: func() []metric.Note {
			return []metric.Note{{When: time.Unix(1e9, 0), What: "remind order-17, attempt 3", Text: "no such address"}}
		},
	})
}

// requireFits fails the test if the page is wider than the window.
func requireFits(t *testing.T, ctx context.Context) {
	t.Helper()
	over := get(t, ctx, chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`))
	require.LessOrEqual(t, over, 0, "pixels that the page is too wide")
}

const (
	clock = `document.querySelector("header time").textContent`
	// ratesShown is a JavaScript condition: the page shows how many timers fire a second.
	ratesShown = `/fired per second\d/.test(document.querySelector(".figures").textContent)`
	// linesShown is one too: the page shows lines through eight readings.
	linesShown = `document.querySelectorAll(".line").length == 5 && document.querySelector(".line polyline").points.length >= 8`
)

func TestPage_Live(t *testing.T) {
	url := newPage(t)
	ctx := newBrowser(t)
	do(t, ctx,
		chromedp.EmulateViewport(1100, 900),
		chromedp.Navigate(url+"/debug/timers"),
		chromedp.Click(chromedp.CSS(`a[href="?scheduler=requests"]`)),
		chromedp.WaitVisible(chromedp.CSS(`#due`)),
		until(ratesShown), // the page shows the rates without a reload
	)
	require.Contains(t, get(t, ctx, chromedp.Title()), "requests - Timers of ")
	require.NotEqual(t, "0", get(t, ctx, chromedp.Text(chromedp.CSS(`.figures div:nth-child(4) dd`))), "a ticker ticks")
	requireFits(t, ctx)

	// The page's clock moves without a reload.
	at := get(t, ctx, chromedp.Evaluate[string](clock))
	do(t, ctx, until(clock+` !== "`+at+`"`))
	// The clock stands still while the page is paused.
	do(t, ctx,
		chromedp.Click(chromedp.CSS(`#live`)),
		until(`document.querySelector("#live").getAttribute("aria-pressed") === "false"`),
	)
	at = get(t, ctx, chromedp.Evaluate[string](clock))
	do(t, ctx, chromedp.Sleep(2500*time.Millisecond))
	require.Equal(t, at, get(t, ctx, chromedp.Evaluate[string](clock)))
}

// The page escapes a name that looks like markup.
func TestPage_Names(t *testing.T) {
	url := newPage(t)
	ctx := newBrowser(t)
	do(t, ctx,
		chromedp.Navigate(url),
		chromedp.Click(chromedp.CSS(`a[href^="?scheduler=leases"]`)),
		chromedp.WaitVisible(chromedp.CSS(`h2.name`)),
	)
	require.Equal(t, "leases & <b>more</b>", get(t, ctx, chromedp.Text(chromedp.CSS(`h2.name`))))
}

func TestPage_WithoutJavaScript(t *testing.T) {
	url := newPage(t)
	ctx := newBrowser(t)
	call(t, ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	do(t, ctx,
		chromedp.EmulateViewport(390, 800, chromedp.EmulateMobile),
		chromedp.Navigate(url+"/?scheduler=requests"),
		chromedp.WaitVisible(chromedp.CSS(`#due`)),
		chromedp.WaitNotVisible(chromedp.CSS(`#live`)),
		chromedp.Click(chromedp.CSS(`.plain a[href*="refresh=2"]`)),
		chromedp.WaitVisible(chromedp.CSS(`.plain a:not([href*="refresh"])`)),
	)
	at := get(t, ctx, chromedp.Location())
	require.Contains(t, at, "refresh=2")
	require.Contains(t, at, "scheduler=requests")
	do(t, ctx,
		chromedp.Click(chromedp.CSS(`.plain a:not([href*="refresh"])`)),
		chromedp.WaitVisible(chromedp.CSS(`.plain a[href*="refresh=2"]`)),
	)
	requireFits(t, ctx)
}

// Every control and picture has a name for screen readers.
func TestPage_ControlsHaveNames(t *testing.T) {
	url := newPage(t)
	ctx := newBrowser(t)
	for _, page := range []string{"/?scheduler=requests", "/"} {
		do(t, ctx,
			chromedp.Navigate(url+page),
			chromedp.WaitVisible(chromedp.CSS(`#live`)),
		)
		controlsHaveNames(t, ctx)
	}
}

func controlsHaveNames(t *testing.T, ctx context.Context) {
	t.Helper()
	named := make(map[string]int)
	for _, n := range call(t, ctx, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored || n.Role == nil {
			continue
		}
		role := strings.Trim(string(n.Role.Value), `"`)
		switch role {
		case "button", "link", "DisclosureTriangle", "image", "img", "heading", "region", "RootWebArea":
			require.NotNil(t, n.Name, role)
			require.NotEmpty(t, strings.Trim(string(n.Name.Value), `" `), "a %s has no name", role)
			named[role]++
		}
	}
	for _, role := range []string{"button", "link", "heading", "region"} {
		require.NotZero(t, named[role], "the tree has no %s at all: %v", role, named)
	}
}

// The page shows the sources of WithSources below the Schedulers, on narrow and wide
// screens, with and without JavaScript.
func TestPage_Sources(t *testing.T) {
	url := newPage(t)
	for _, script := range []bool{false, true} {
		ctx := newBrowser(t)
		call(t, ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
		for _, width := range []int64{390, 1100} {
			do(t, ctx,
				chromedp.EmulateViewport(width, 900),
				chromedp.Navigate(url),
				chromedp.WaitVisible(chromedp.CSS(`#source0`)),
			)
			require.Equal(t, "Mail worker mailer", get(t, ctx, chromedp.Text(chromedp.CSS(`#source0`))))
			require.Contains(t, get(t, ctx, chromedp.Text(chromedp.CSS(`section[aria-labelledby="source0"]`))), "no such address")
			requireFits(t, ctx)
		}
		if script { // an update of the page replaces the tables
			at := get(t, ctx, chromedp.Evaluate[string](clock))
			do(t, ctx, until(clock+` !== "`+at+`"`), chromedp.WaitVisible(chromedp.CSS(`#source0`)))
		}
	}
}

// If SCREENSHOTS names a folder, TestPage_Screenshots writes screenshots there: narrow and
// wide, light and dark.
func TestPage_Screenshots(t *testing.T) {
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		t.Skip("SCREENSHOTS is not set")
	}
	at := newPage(t)
	ctx := newBrowser(t)
	url := at + "/?scheduler=requests"
	for _, width := range []int64{390, 1100} {
		for _, scheme := range []string{"light", "dark"} {
			call(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			do(t, ctx,
				chromedp.EmulateViewport(width, 900),
				chromedp.Navigate(url),
				until(ratesShown),
			)
			picture := get(t, ctx, chromedp.FullScreenshot(100))
			require.NoError(t, os.WriteFile(fmt.Sprintf("%s/page-%d-%s.png", folder, width, scheme), picture, 0o644))
			do(t, ctx, chromedp.Navigate(at), chromedp.WaitVisible(chromedp.CSS(`#source0`)))
			picture = get(t, ctx, chromedp.FullScreenshot(100))
			require.NoError(t, os.WriteFile(fmt.Sprintf("%s/sources-%d-%s.png", folder, width, scheme), picture, 0o644))
		}
	}
}

// For scripts/page-picture, TestPage_Picture writes a screenshot of the page at PAGE_URL to
// the file PAGE_PICTURE.
func TestPage_Picture(t *testing.T) {
	url, path := os.Getenv("PAGE_URL"), os.Getenv("PAGE_PICTURE")
	if url == "" || path == "" {
		t.Skip("PAGE_URL and PAGE_PICTURE are not set")
	}
	ctx := newBrowser(t)
	do(t, ctx,
		chromedp.EmulateViewport(960, 734),
		chromedp.Navigate(url),
		until(linesShown),
	)
	require.NoError(t, os.WriteFile(path, get(t, ctx, chromedp.CaptureScreenshot()), 0o644))
}
