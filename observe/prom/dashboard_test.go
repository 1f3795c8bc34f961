package prom_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tickless/tickless/internal/observetest"
)

// A panel has the fields of a dashboard's panel that these tests check.
type panel struct {
	ID      int
	Type    string
	Title   string
	Targets []struct{ Expr string }
}

// panels returns the panels of dashboard.json.
func panels(t *testing.T) []panel {
	t.Helper()
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	return dashboard.Panels
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestFiles_NameMetricsThatExist checks that every metric in the dashboard and the
// alert rules is documented. Other tests compare the documentation with the exported
// metrics.
func TestFiles_NameMetricsThatExist(t *testing.T) {
	exist := make(map[string]bool)
	for _, r := range observetest.Documented(t, "../..") {
		exist[r.Prometheus] = true // a native histogram's too
		if r.Kind != "histogram" {
			continue
		}
		for _, suffix := range []string{"_bucket", "_count", "_sum"} {
			exist[r.Prometheus+suffix] = true
		}
	}
	for _, file := range []string{"dashboard.json", "alerts.yml", "alerts_test.yml"} {
		found := 0
		for _, name := range regexp.MustCompile(`\btickless_\w+`).FindAllString(read(t, file), -1) {
			found++
			if !exist[name] {
				t.Errorf("%s names %s, which does not exist", file, name)
			}
		}
		if found < 9 {
			t.Errorf("%s names only %d metrics", file, found)
		}
	}
}

// notShown are the metrics of package durable that the dashboard does not show.
var notShown = []string{
	"tickless_durable_client_queue_age_seconds",
	"tickless_durable_client_queue_paused",
	"tickless_durable_worker_attempt_running",       // running attempts take the places
	"tickless_durable_worker_attempt_claimed_total", // the sum of the others
	"tickless_durable_worker_task_unknown_total",    // the store counts those
	"tickless_durable_worker_attempt_overran_total",
	"tickless_durable_worker_dead_purged_total",
	"tickless_durable_worker_claims_total",
	"tickless_durable_worker_claims_empty_total",
	"tickless_durable_worker_errors_total", // as the errors of the Client's commands
	"tickless_durable_worker_wakeups_total",
	"tickless_durable_client_read_failures_total", // for an alert
	"tickless_durable_worker_read_failures_total",
}

// TestDashboard_ShowsWhatMatters checks that the dashboard shows all metrics of
// Schedulers, and those of durable Clients and Workers except notShown.
func TestDashboard_ShowsWhatMatters(t *testing.T) {
	dashboard := read(t, "dashboard.json")
	for _, r := range observetest.Documented(t, "../..") {
		if strings.HasPrefix(r.Prometheus, "tickless_durable_") && !slices.Contains(notShown, r.Prometheus) && !strings.Contains(dashboard, r.Prometheus) {
			t.Errorf("the dashboard does not show %s", r.Prometheus)
		}
		if strings.HasPrefix(r.Prometheus, "tickless_scheduler_") && !strings.Contains(dashboard, r.Prometheus) &&
			r.Prometheus != "tickless_scheduler_executor_panicked_total" && // as callback_panicked
			r.Prometheus != "tickless_scheduler_read_failures_total" { // for an alert
			t.Errorf("the dashboard does not show %s", r.Prometheus)
		}
	}
}

// TestDashboard_PanelsAreWhole checks that each panel has a title and a unique id, and
// that each panel except a row has a query.
func TestDashboard_PanelsAreWhole(t *testing.T) {
	seen := make(map[int]string)
	for _, p := range panels(t) {
		if other, twice := seen[p.ID]; twice {
			t.Errorf("%q and %q have the id %d", other, p.Title, p.ID)
		}
		seen[p.ID] = p.Title
		if p.Title == "" || (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("panel %d %q is a %s with %d queries", p.ID, p.Title, p.Type, len(p.Targets))
		}
	}
}

// instances returns the selector with which the dashboard makes its list of instances.
func instances(t *testing.T) string {
	t.Helper()
	var dashboard struct {
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, v := range dashboard.Templating.List {
		if v.Name == "instance" {
			return strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ", instance)")
		}
	}
	t.Fatal("there is no variable instance")
	return ""
}

// TestDashboard_AnyProcessCanBeChosen checks that the list of instances includes a
// process that has, for example, Schedulers but no Purgatory, or a Purgatory but no Scheduler.
func TestDashboard_AnyProcessCanBeChosen(t *testing.T) {
	selector := instances(t)
	m := regexp.MustCompile(`^\{__name__=~"(.+)"\}$`).FindStringSubmatch(selector)
	if m == nil {
		t.Fatalf("the list of instances is only that of %s", selector)
	}
	names, chosen := regexp.MustCompile("^(?:"+m[1]+")$"), make(map[string]bool)
	for _, r := range observetest.Documented(t, "../..") {
		kind, _, _ := strings.Cut(r.Labels, ",")
		chosen[kind] = chosen[kind] || names.MatchString(r.Prometheus)
	}
	for kind, yes := range chosen {
		if !yes {
			t.Errorf("no metric of a %s is among %s", kind, selector)
		}
	}
}

// TestAlerts_EachHasATest checks that each alert has a case in alerts_test.yml and a line
// in the documentation.
func TestAlerts_EachHasATest(t *testing.T) {
	rules, tests, docs := read(t, "alerts.yml"), read(t, "alerts_test.yml"), read(t, "../../docs/observability.md")
	alerts := regexp.MustCompile(`(?s)- alert: (\w+).*?severity: (\w+)`).FindAllStringSubmatch(rules, -1)
	if len(alerts) == 0 {
		t.Fatal("there is no alert")
	}
	for _, m := range alerts {
		if !strings.Contains(tests, "alertname: "+m[1]+"\n        exp_alerts:\n          - exp_labels") {
			t.Errorf("alerts_test.yml does not show when %s fires", m[1])
		}
		if !strings.Contains(docs, "\n| `"+m[1]+"` | "+m[2]+" |") {
			t.Errorf("docs/observability.md does not list %s as %s", m[1], m[2])
		}
	}
}
