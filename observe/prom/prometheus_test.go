package prom_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/tickless/tickless/internal/observetest"
	"github.com/tickless/tickless/observe/prom"
)

// program returns the path of prometheus or promtool, which scripts/need-prometheus
// installs into .bin. If the program is missing, the test is skipped.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs("../../.bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("there is no %s: CI=true scripts/need-prometheus fetches it", name)
	}
	return path
}

func run(t *testing.T, path string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(path), strings.Join(args, " "), err, out)
	}
}

// TestAlerts_ByPromtool runs promtool on the alert rules and their tests.
func TestAlerts_ByPromtool(t *testing.T) {
	promtool := program(t, "promtool")
	run(t, promtool, "check", "rules", "alerts.yml")
	run(t, promtool, "test", "rules", "alerts_test.yml")
}

// TestCollector_ByPromtool runs promtool on the served metrics.
func TestCollector_ByPromtool(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), program(t, "promtool"), "check", "metrics")
	w := httptest.NewRecorder()
	exporter(t).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	cmd.Stdin = w.Body
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
}

// exporter serves the metrics of observetest's sources.
func exporter(t *testing.T) http.Handler {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(prom.New(observetest.Sources(t)...))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// TestPrometheus_Scrapes runs a real Prometheus that scrapes classic and then native
// histograms, and runs each query of the dashboard.
func TestPrometheus_Scrapes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts servers and waits for them")
	}
	path := program(t, "prometheus")
	t.Run("classic", func(t *testing.T) {
		t.Parallel()
		s := startPrometheus(t, path)
		s.answersAll(t)
		s.expect(t, `tickless_scheduler_timer_pending`, 4)
		s.expect(t, `tickless_scheduler_timer_lateness_seconds_count`, 3)
		s.expect(t, `count(ALERTS) or vector(0)`, 0)
		s.expect(t, `count(group by (instance) (`+instances(t)+`))`, 1)
	})
	t.Run("native", func(t *testing.T) {
		t.Parallel()
		s := startPrometheus(t, path, "--enable-feature=native-histograms")
		if _, err := s.try(`histogram_count(up)`); err != nil && strings.Contains(err.Error(), "unknown function") {
			t.Skipf("this prometheus is older than native histograms: %v", err)
		}
		s.expect(t, `histogram_count(tickless_scheduler_timer_lateness_seconds)`, 3)
		if got := s.query(t, `histogram_quantile(0.5, tickless_scheduler_timer_lateness_seconds)`); len(got) != 1 || got[0] < 0.0027 || got[0] > 0.0037 {
			t.Errorf("the median lateness is %v, want about 0.003", got)
		}
		if values, err := s.try(`tickless_scheduler_timer_lateness_seconds_bucket`); err != nil || len(values) > 0 {
			t.Errorf("there are %d classic buckets too, %v", len(values), err)
		}
		s.answersAll(t)
	})
}

// answersAll checks that each query of the dashboard and of histogram alerts has a
// result. It leaves out queries about durable tasks.
func (s *server) answersAll(t *testing.T) {
	t.Helper()
	for _, p := range panels(t) {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "tickless_durable_") {
				continue // no source here has them
			}
			expr := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*", "$scheduler", ".*").Replace(target.Expr)
			if values := s.query(t, expr); len(values) == 0 {
				t.Errorf("panel %q: no result for %s", p.Title, expr)
			}
		}
	}
	alerts := regexp.MustCompile(`(?s)expr: >-\s+\((histogram_quantile.+?)\) > 0\.1\n`).FindAllStringSubmatch(read(t, "alerts.yml"), -1)
	if len(alerts) != 1 {
		t.Errorf("%d alerts are of histograms, want 1", len(alerts))
	}
	for _, m := range alerts {
		if values := s.query(t, m[1]); len(values) == 0 {
			t.Errorf("no result for %s", m[1])
		}
	}
}

// A server is a running Prometheus that scrapes an exporter.
type server struct{ url string }

// startPrometheus starts a Prometheus that scrapes an exporter, and returns after a few
// scrapes.
func startPrometheus(t *testing.T, path string, flags ...string) *server {
	t.Helper()
	target := httptest.NewServer(exporter(t))
	t.Cleanup(target.Close)
	rules, err := filepath.Abs("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf(`
global: {scrape_interval: 3s, scrape_timeout: 3s, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - job_name: tickless
    static_configs: [{targets: [%q]}]
`, rules, strings.TrimPrefix(target.URL, "http://"))
	if err := os.WriteFile(dir+"/prometheus.yml", []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	flags = append([]string{"--config.file=" + dir + "/prometheus.yml", "--storage.tsdb.path=" + dir + "/data"}, flags...)
	for tries := 1; ; tries++ {
		s, log := listen(t, path, flags)
		if s != nil {
			return s
		}
		// Another program may take the port after listen has chosen it and before
		// Prometheus opens it.
		if tries == 5 || !strings.Contains(log, "address already in use") {
			t.Fatalf("prometheus has ended:\n%s", log)
		}
	}
}

// listen starts Prometheus on a free port and waits for a few scrapes. If Prometheus ends,
// listen returns nil and its log.
func listen(t *testing.T, path string, flags []string) (s *server, log string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	var out strings.Builder
	cmd := exec.Command(path, append(flags[:len(flags):len(flags)], "--web.listen-address="+address)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		http.DefaultClient.CloseIdleConnections()
	})
	s = &server{"http://" + address}
	for {
		values, err := s.try(`count_over_time(up[1m]) * up`)
		if err == nil && len(values) == 1 && values[0] >= 2 {
			return s, ""
		}
		select {
		case <-ended:
			return nil, out.String()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// try returns the current values of a query.
func (s *server) try(expr string) ([]float64, error) {
	r, err := http.Get(s.url + "/api/v1/query?query=" + url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct {
				Value     []any
				Histogram []json.RawMessage
			}
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	var values []float64
	for _, result := range answer.Data.Result {
		if len(result.Histogram) > 0 {
			values = append(values, math.NaN()) // not a number
			continue
		}
		v, err := strconv.ParseFloat(result.Value[1].(string), 64)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// query repeats a query until it has values, for up to 10 s. On a busy machine, a scrape
// may time out.
func (s *server) query(t *testing.T, expr string) []float64 {
	t.Helper()
	for tries := 0; ; tries++ {
		values, err := s.try(expr)
		if err != nil || len(values) > 0 || tries == 50 {
			if err != nil {
				t.Error(err)
			}
			return values
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (s *server) expect(t *testing.T, expr string, want float64) {
	t.Helper()
	if got := s.query(t, expr); len(got) != 1 || got[0] != want {
		t.Errorf("%s is %v, want %g", expr, got, want)
	}
}
