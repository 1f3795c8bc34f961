package debugpage_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/internal/observetest"
	"github.com/tickless/tickless/observe"
	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/purgatory"
	"github.com/tickless/tickless/timer"
)

// The page and its JSON show the Sources, unless the query names a Scheduler.
func TestWithSources(t *testing.T) {
	h := debugpage.Handler(debugpage.WithSchedulers([]*timer.Scheduler{}...), debugpage.WithSources(append(observetest.Sources(t), observetest.Foreign())...))
	_, body := get(t, h, "http://localhost/")
	wellFormed(t, body)
	for _, want := range []string{
		"Mail worker mailer", "Purgatory produce", "Keyed sessions",
		`<th scope="row">bill</th><td class="n">3</td><td class="n">1 s / 1 s</td>`, "Latest errors", "no such address", "attempt 3",
		`<dt title="How long the oldest has waited">queue late</dt><dd>5 s</dd>`, ">load</dt><dd>0.25</dd>", ">duration, p50 / p99</th>",
	} {
		require.Contains(t, body, want)
	}
	_, body = get(t, h, "http://localhost/?format=json")
	var all struct {
		Sources []struct {
			Kind, Name string
			Numbers    map[string]any
			Notes      []struct{ Text string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	found := false
	for _, s := range all.Sources {
		if s.Kind != "mail.worker" {
			continue
		}
		found = true
		require.Equal(t, "mailer", s.Name)
		require.EqualValues(t, 3, s.Numbers["queue"])
		require.EqualValues(t, 3, s.Numbers["attempt.claimed"].(map[string]any)["bill"])
		require.EqualValues(t, 1, s.Numbers["attempt.duration"].(map[string]any)["bill"].(map[string]any)["sum"])
		require.Equal(t, "no such address", s.Notes[0].Text)
	}
	require.True(t, found)
	_, body = get(t, h, "http://localhost/?scheduler=x")
	require.NotContains(t, body, "Mail worker")
	require.Panics(t, func() { debugpage.WithSources(observe.Source{}) })
}

// A program may give the page the same Sources as its exporters. The page lists each
// Scheduler once.
func TestWithSources_SchedulersOnce(t *testing.T) {
	shown, other := timer.New(timer.WithName("shown")), timer.New()
	t.Cleanup(func() {
		shown.Close()
		other.Close()
	})
	h := debugpage.Handler(debugpage.WithSchedulers(shown),
		debugpage.WithSources(observe.Scheduler("again", shown), observe.Scheduler("other", other)))
	_, body := get(t, h, "http://localhost/?format=json")
	var all struct {
		Schedulers, Sources []struct{ Name string }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &all))
	require.Equal(t, []struct{ Name string }{{"shown"}, {"other"}}, all.Schedulers)
	require.Empty(t, all.Sources)
	_, body = get(t, h, "http://localhost/")
	require.NotContains(t, body, "again")
	require.Contains(t, body, ">other</a>")
}

// If reading a Source panics, the page shows the panic and the other Sources.
func TestWithSources_OneThatPanics(t *testing.T) {
	h := debugpage.Handler(debugpage.WithSchedulers([]*timer.Scheduler{}...), debugpage.WithSources(append(observetest.Sources(t),
		observe.Purgatory("not made", new(purgatory.Purgatory[string])))...))
	r, body := get(t, h, "http://localhost/")
	require.Equal(t, http.StatusOK, r.StatusCode)
	wellFormed(t, body)
	require.Contains(t, body, "Purgatory not made")
	require.Contains(t, body, `<p class="note">Reading it failed: observe: panic: `)
	require.Contains(t, body, "<dt title=\"Reads that panicked; the other numbers are then missing\">read failures</dt><dd>1</dd>")
	require.Contains(t, body, "Purgatory produce")
	_, body = get(t, h, "http://localhost/?format=json")
	require.Contains(t, body, `"error": "observe: panic: `)
}
