package debugpage_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tickless/tickless/observe/debugpage"
	"github.com/tickless/tickless/timer"
)

// BenchmarkHandler measures a page of one Scheduler with 100,000 pending timers, alone and
// among 500 Schedulers.
func BenchmarkHandler(b *testing.B) {
	for _, n := range []int{1, 500} {
		b.Run(fmt.Sprintf("schedulers=%d", n), func(b *testing.B) {
			ss := make([]*timer.Scheduler, n)
			for i := range ss {
				ss[i] = timer.New(timer.WithName(fmt.Sprint("s", i)))
				b.Cleanup(func() { ss[i].Close() })
				for k := range 100_000 / n {
					ss[i].AfterFunc(time.Hour+time.Duration(k)*time.Millisecond, func() {})
				}
			}
			h := debugpage.Handler(debugpage.WithSchedulers(ss...))
			r := httptest.NewRequest(http.MethodGet, "http://localhost/", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
