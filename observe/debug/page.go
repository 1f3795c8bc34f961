package debug

import (
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/tickless/tickless/timer"
)

//go:embed page.html
var pageHTML string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"duration": duration,
	"number":   number,
	"rate":     func(f float64) string { return number(uint64(math.Round(f))) },
	"clock":    func(t time.Time) string { return t.Format("15:04:05.000") },
	"short":    short,
	"plural":   plural,
}).Parse(pageHTML))

// pageData is what page.html shows.
type pageData struct {
	Program    string
	Process    string
	Now        time.Time
	Schedulers []link
	// Part says which of the Schedulers are listed, if not all are. Previous and Next lead
	// to the others, if there are any.
	Part, Previous, Next string
	// Sources are shown where no Scheduler was asked for.
	Sources []sourceView
	// Shown is the Scheduler that was asked for, or the only one; nil: the list is shown.
	Shown   *schedulerView
	Missing string // the name that was asked for, if there is none of it
	Refresh int    // seconds after which the page is loaded again; 0: never
	// Again and Once lead to the same page with that and without.
	Again, Once, JSON string
}

// link is a line of the list of Schedulers.
type link struct {
	summary
	Error      string // why there is no summary
	Label, URL string
	Current    bool
}

// listed is how many Schedulers the list shows at most, from the one on that the query's
// "from" says.
const listed = 500

// inFull is how many Schedulers the JSON has at most, likewise: each takes some 20 kB.
const inFull = 100

// part returns which Schedulers, of n, are asked for, of which most are shown at most.
func part(n, most int, query url.Values) (from, to int) {
	from, _ = strconv.Atoi(query.Get("from"))
	from = min(max(from, 0), max(n-1, 0))
	return from, min(from+most, n)
}

// choose returns which Scheduler is asked for, the only one if none is, or else -1.
func choose(all []*timer.Scheduler, query url.Values) (shown int, asked bool) {
	name, asked := query["scheduler"]
	if !asked {
		if len(all) == 1 {
			return 0, false
		}
		return -1, false
	}
	nth, _ := strconv.Atoi(query.Get("nth"))
	for i, s := range all {
		if is(s.UniqueName(), name[0]) {
			if nth == 0 {
				return i, true
			}
			nth--
		}
	}
	return -1, true
}

// is reports whether a name is the one that was asked for, which may come from the JSON or
// from a metric, where bytes that are not UTF-8 are replaced.
func is(name, asked string) bool {
	return name == asked || valid(name) == asked
}

func valid(name string) string { return strings.ToValidUTF8(name, "\uFFFD") }

func (h *handler) newPageData(all []*timer.Scheduler, shown int, query url.Values) pageData {
	d := pageData{
		Program: programName(),
		Process: fmt.Sprintf("pid %d, %s, GOMAXPROCS %d, %s", os.Getpid(), runtime.Version(), runtime.GOMAXPROCS(0),
			plural(runtime.NumGoroutine(), "goroutine")),
		Now: time.Now(),
	}
	d.Refresh, _ = strconv.Atoi(query.Get("refresh"))
	d.Refresh = min(max(d.Refresh, 0), 3600)
	with := func(key, value string) string {
		q := url.Values{}
		for k, v := range query {
			q[k] = v
		}
		q.Del(key)
		if value != "" {
			q.Set(key, value)
		}
		return "?" + q.Encode()
	}
	d.Again, d.Once, d.JSON = with("refresh", "2"), with("refresh", ""), with("format", "json")

	if shown >= 0 {
		v := h.view(all[shown])
		d.Shown = &v
	} else if name, asked := query["scheduler"]; asked {
		d.Missing = name[0]
	}
	if _, asked := query["scheduler"]; !asked {
		d.Sources = h.sources(all)
	}
	from, to := part(len(all), listed, query)
	if to-from < len(all) {
		d.Part = fmt.Sprintf("%s to %s of %s", number(from+1), number(to), number(len(all)))
	}
	if from > 0 {
		d.Previous = with("from", strconv.Itoa(max(0, from-listed)))
	}
	if to < len(all) {
		d.Next = with("from", strconv.Itoa(to))
	}
	seen := make(map[string]int)
	for i, s := range all[:to] {
		name := s.UniqueName()
		n := seen[name] // without a name, or of those given one that was closed
		seen[name]++
		if i < from {
			continue
		}
		l := link{Current: i == shown, Label: name, URL: "?" + url.Values{"scheduler": {name}}.Encode()}
		l.Error = panicked(func() { l.summary = summarize(h.rates.of(s)) })
		if name == "" {
			l.Label = "(no name)"
		}
		if n > 0 {
			l.Label += " #" + strconv.Itoa(n+1)
			l.URL += "&nth=" + strconv.Itoa(n)
		}
		d.Schedulers = append(d.Schedulers, l)
	}
	return d
}

func programName() string {
	name := os.Args[0]
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	return name
}

// duration writes seconds with three digits and a unit that suits.
func duration(seconds float64) string {
	units := []struct {
		size float64
		name string
	}{{86400, "d"}, {3600, "h"}, {60, "min"}, {1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}}
	if seconds == 0 {
		return "0"
	}
	for _, u := range units {
		if seconds >= 0.9995*u.size {
			return strconv.FormatFloat(seconds/u.size, 'g', 3, 64) + " " + u.name
		}
	}
	return strconv.FormatFloat(seconds*1e9, 'g', 3, 64) + " ns"
}

// number writes a count with thin spaces between thousands.
func number(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// short leaves the folders out of the name of a function or a file.
func short(name string) string {
	head, rest, generic := strings.Cut(name, "[") // type arguments have folders too
	if generic {
		rest = "[" + rest
	}
	return head[strings.LastIndexByte(head, '/')+1:] + rest
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}
