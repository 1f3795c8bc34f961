package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/jobs"
)

func place(t testing.TB, name string) *time.Location {
	loc, err := time.LoadLocation(name)
	require.NoError(t, err)
	return loc
}

// fields is a cron spec with a list for each field. A nil list stands for a star.
type fields struct {
	minutes, hours, dom, months, dow []int
	repeats                          bool // a time that the clock shows twice counts twice
}

func set(list []int, low, high int) (bits uint64) {
	if list == nil {
		bits = 1 << 63
		for i := low; i <= high; i++ {
			bits |= 1 << i
		}
	}
	for _, i := range list {
		bits |= 1 << i
	}
	return bits
}

func (f *fields) cron(loc *time.Location) jobs.Cron {
	return jobs.Cron{Second: 1, Minute: set(f.minutes, 0, 59), Hour: set(f.hours, 0, 23), Dom: set(f.dom, 1, 31),
		Month: set(f.months, 1, 12), Dow: set(f.dow, 0, 6), Location: loc}
}

func every(step, begin, end int) (list []int) {
	for i := begin; i <= end; i += step {
		list = append(list, i)
	}
	return list
}

// specs returns specs for which a change of the clock matters, and random ones.
func specs(rnd *rand.Rand) []fields {
	list := []fields{
		{minutes: []int{30}, hours: []int{2}},
		{minutes: []int{0}, hours: []int{2}},
		{minutes: []int{30}, hours: []int{1}},
		{minutes: []int{0}, hours: []int{0}},
		{minutes: []int{1}, hours: []int{0}, dow: []int{0}},
		{minutes: []int{59}, hours: []int{23}},
		{minutes: []int{0}, hours: []int{9}, dow: []int{1, 2, 3, 4, 5}},
		{minutes: []int{30}, hours: []int{1, 13}},
		{minutes: every(20, 0, 59), hours: []int{0, 1, 2, 3}},
		{minutes: []int{0}, repeats: true},
		{minutes: []int{15}, repeats: true},
		{minutes: every(7, 0, 59), repeats: true},
		{minutes: []int{30}, hours: every(2, 0, 23), repeats: true},
		{minutes: []int{10}, hours: every(2, 1, 23), repeats: true},
		{minutes: []int{0}, hours: every(6, 0, 23), repeats: true},
		{minutes: []int{45}, hours: every(8, 0, 23)},
		{minutes: []int{0}, hours: []int{0}, dom: []int{29}, months: []int{2}},
		{minutes: []int{0}, hours: []int{3}, dom: []int{31}, dow: []int{6}},
		{minutes: []int{30}, hours: []int{12}, dom: []int{30}, months: []int{12}},
	}
	some := func(n, low, high int) (list []int) {
		for range n {
			list = append(list, low+rnd.IntN(high-low+1))
		}
		return list
	}
	for range 8 {
		f := fields{minutes: some(2, 0, 59), hours: append(some(2, 0, 4), 23)}
		switch rnd.IntN(4) {
		case 0:
			f.dow = some(2, 0, 6)
		case 1:
			f.dom = some(8, 1, 31)
		case 2:
			f.dow, f.dom, f.months = some(1, 0, 6), some(3, 1, 31), some(4, 1, 12)
		}
		list = append(list, f)
	}
	return list
}

// A face is the time that a clock shows.
type face struct{ minute, hour, day, month, weekday int }

func faceOf(t time.Time) face {
	hour, minute, _ := t.Clock()
	_, month, day := t.Date()
	return face{minute, hour, day, int(month), int(t.Weekday())}
}

// A reading finds the occurrences of a spec by reading a clock each minute.
type reading struct {
	fields
	minute [60]bool
	hour   [24]bool
	want   []int64
}

func newReading(f fields) *reading {
	r := &reading{fields: f}
	for i := range r.minute {
		r.minute[i] = f.minutes == nil || slices.Contains(f.minutes, i)
	}
	for i := range r.hour {
		r.hour[i] = f.hours == nil || slices.Contains(f.hours, i)
	}
	return r
}

// has reports whether the spec matches the time that the clock shows.
func (r *reading) has(x *face) bool {
	if !r.minute[x.minute] || !r.hour[x.hour] || r.months != nil && !slices.Contains(r.months, x.month) {
		return false
	}
	switch {
	case r.dom == nil:
		return r.dow == nil || slices.Contains(r.dow, x.weekday)
	case r.dow == nil:
		return slices.Contains(r.dom, x.day)
	}
	return slices.Contains(r.dom, x.day) || slices.Contains(r.dow, x.weekday)
}

// read appends at, a Unix time, to want if the spec matches. now is what the clock
// shows at this time. shown lists the local times that this minute adds: none in a
// repeated hour, and several after a gap.
func (r *reading) read(at int64, now face, shown []face) {
	has := r.repeats && r.has(&now)
	for i := range shown {
		has = has || r.has(&shown[i])
	}
	if has {
		r.want = append(r.want, at)
	}
}

func TestCron_AsAClockThatIsReadEachMinute(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo",
		"Asia/Beirut", "Antarctica/Troll", "America/St_Johns", "Atlantic/Azores", "America/Havana", "Asia/Gaza",
		"Africa/Casablanca"}
	ranges := [][2]int{{2007, 2027}, {2040, 2041}} // package time has no tables after 2037
	if testing.Short() {
		ranges = [][2]int{{2011, 2012}, {2040, 2041}} // Samoa has no 30 December 2011
	}
	all := specs(newRand(t))
	for i := range len(zones) * len(ranges) {
		zone, years := zones[i/len(ranges)], ranges[i%len(ranges)]
		t.Run(fmt.Sprint(zone, years), func(t *testing.T) {
			t.Parallel()
			loc := place(t, zone)
			var readings []*reading
			var at [60][]*reading // the readings whose spec has this minute
			for _, f := range all {
				r := newReading(f)
				readings = append(readings, r)
				for m := range at {
					if r.minute[m] {
						at[m] = append(at[m], r)
					}
				}
			}
			from := time.Date(years[0], 1, 1, 0, 0, 0, 0, time.UTC).Unix()
			to := time.Date(years[1], 1, 1, 0, 0, 0, 0, time.UTC).Unix()
			const day = 24 * 60 * 60
			clock := func(at int64) time.Time { // the local time, as a time in UTC
				t := time.Unix(at, 0).In(loc)
				y, mon, d := t.Date()
				return time.Date(y, mon, d, t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
			}
			latest := clock(from - day)
			var shown []face
			for t := from - day + 60; t < to; t += 60 {
				now := clock(t)
				shown = shown[:0]
				for latest.Before(now) {
					latest = latest.Add(time.Minute)
					shown = append(shown, faceOf(latest))
				}
				if t < from {
					continue
				}
				these := at[now.Minute()]
				if len(shown) > 1 {
					these = readings
				}
				x := faceOf(now)
				for _, r := range these {
					r.read(t, x, shown)
				}
			}
			for _, r := range readings {
				cron, at := r.cron(loc), time.Unix(from-1, 0)
				for i, want := range r.want {
					got := cron.Next(at)
					if got.Unix() != want {
						t.Fatalf("occurrence %d of %+v after %v: got %v, not %v", i, r.fields, at.In(loc), got.In(loc), time.Unix(want, 0).In(loc))
					}
					at = got
				}
				require.GreaterOrEqual(t, cron.Next(at).Unix(), to, "%+v", r.fields)
			}
		})
	}
}

func TestCron_WhenTheClockIsChanged(t *testing.T) {
	for _, c := range []struct {
		zone, begin string
		fields
		want []string
	}{
		{"Europe/Berlin", "2026-03-28 12:00", fields{minutes: []int{30}, hours: []int{2}},
			[]string{"03-29 03:00 CEST", "03-30 02:30 CEST"}},
		{"Europe/Berlin", "2026-10-24 12:00", fields{minutes: []int{30}, hours: []int{2}},
			[]string{"10-25 02:30 CEST", "10-26 02:30 CET"}},
		{"Europe/Berlin", "2026-10-25 00:30", fields{minutes: []int{0}},
			[]string{"10-25 01:00 CEST", "10-25 02:00 CEST", "10-25 02:00 CET", "10-25 03:00 CET"}},
		{"Australia/Lord_Howe", "2026-10-03 12:00", fields{minutes: []int{0}, hours: []int{2}},
			[]string{"10-04 02:30 +11", "10-05 02:00 +11"}},
		{"Pacific/Apia", "2011-12-29 12:00", fields{minutes: []int{0}, hours: []int{9}},
			[]string{"12-31 00:00 +14", "12-31 09:00 +14"}},
		{"America/Havana", "2026-10-31 12:00", fields{minutes: []int{0}, hours: []int{0, 12}},
			[]string{"11-01 00:00 CDT", "11-01 12:00 CST"}},
	} {
		t.Run(fmt.Sprint(c.zone, c.begin), func(t *testing.T) {
			loc := place(t, c.zone)
			at, err := time.ParseInLocation("2006-01-02 15:04", c.begin, loc)
			require.NoError(t, err)
			var got []string
			for range c.want {
				at = c.cron(loc).Next(at)
				got = append(got, at.Format("01-02 15:04 MST"))
			}
			require.Equal(t, c.want, got)
		})
	}
}

// The test calls Next from many moments. The result must not depend on the previous
// occurrence.
func TestCron_FromAnyMoment(t *testing.T) {
	loc := place(t, "Australia/Lord_Howe")
	rnd := newRand(t)
	for _, f := range specs(rnd) {
		cron := f.cron(loc)
		begin := time.Date(2026, 4, 3, 0, 0, 0, 0, loc)
		next := cron.Next(begin)
		for at := begin; at.Before(begin.AddDate(0, 0, 4)); at = at.Add(time.Duration(rnd.Int64N(int64(10 * time.Minute)))) {
			for !next.After(at) {
				next = cron.Next(next)
			}
			require.True(t, next.Equal(cron.Next(at)), "%+v after %v", f, at)
		}
	}
}

func TestCron_Seconds(t *testing.T) {
	cron := jobs.Cron{Second: 1<<10 | 1<<50, Minute: 1 << 59, Hour: set(nil, 0, 23), Dom: set(nil, 1, 31), Month: set(nil, 1, 12), Dow: set(nil, 0, 6)}
	at := time.Date(1969, 12, 31, 22, 59, 10, 1, time.UTC) // before 1970 too
	for _, want := range []string{"22:59:50", "23:59:10", "23:59:50", "00:59:10"} {
		at = cron.Next(at)
		require.Equal(t, want, at.Format(time.TimeOnly))
		require.Equal(t, time.UTC, at.Location(), "the location of Next's argument")
	}
}

func TestCron_Never(t *testing.T) {
	for _, f := range []fields{
		{minutes: []int{0}, hours: []int{0}, dom: []int{30}, months: []int{2}},
		{dom: []int{31}, months: []int{4, 6, 9, 11}},
		{minutes: []int{}},
		{hours: []int{}},
		{months: []int{}},
	} {
		for _, zone := range []string{"UTC", "Europe/Berlin", "Pacific/Apia"} {
			require.Zero(t, f.cron(place(t, zone)).Next(epoch), "%+v", f)
		}
	}
	require.Zero(t, jobs.Cron{}.Next(epoch))
	leap := fields{minutes: []int{0}, hours: []int{0}, dom: []int{29}, months: []int{2}}
	require.Equal(t, "2104-02-29", leap.cron(time.UTC).Next(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)).Format(time.DateOnly))
}

func BenchmarkCronNext(b *testing.B) {
	for _, c := range []struct {
		name string
		fields
	}{
		{"weekdays", fields{minutes: []int{0}, hours: []int{9}, dow: []int{1, 2, 3, 4, 5}}},
		{"minutely", fields{}},
		{"leapday", fields{minutes: []int{0}, hours: []int{0}, dom: []int{29}, months: []int{2}}},
		{"never", fields{dom: []int{30}, months: []int{2}}},
	} {
		b.Run("spec="+c.name, func(b *testing.B) {
			cron, at := c.cron(place(b, "Europe/Berlin")), epoch
			for b.Loop() {
				if at = cron.Next(at); at.IsZero() || at.Year() > 2060 {
					at = epoch
				}
			}
		})
	}
}
