package jobs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
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

// parse returns the Cron of a spec, in a zone of the test.
func parse(t testing.TB, spec, zone string) jobs.Cron {
	t.Helper()
	s, err := jobs.ParseCron(spec, zone)
	require.NoError(t, err)
	return s.(jobs.Cron)
}

// specs returns specs for which a change of the clock matters, and random ones.
func specs(rnd *rand.Rand) []string {
	list := []string{
		"30 2 * * *", "0 2 * * *", "30 1 * * *", "0 0 * * *", "1 0 * * 0", "59 23 * * 7", "0 9 * * 1-5", "30 1,13 * * *", "0-40/20 0,1,2,3 * * *",
		"0 * * * *", "15 * * * *", "*/7 * * * *", "30 */2 * * *", "10 1-23/2 * * *", "0 */6 * * *", "45 0,8,16 * * *", "*/10 0-6 * * *", "* 2 * * *",
		"0 0 29 2 *", "0 3 31 * 6", "30 12 30 12 *", "0 2 L * *", "30 2 */2 * 1", "30 2 * * */3", "0 0,12 1-7 * 0", "30 0 1,L 3,10 *",
	}
	some := func(n, low, high int) string {
		var list []string
		for range n {
			list = append(list, strconv.Itoa(low+rnd.IntN(high-low+1)))
		}
		return strings.Join(list, ",")
	}
	for range 8 {
		s := some(2, 0, 59) + " " + some(2, 0, 4) + ",23 "
		switch rnd.IntN(4) {
		case 0:
			s += "* * " + some(2, 0, 7)
		case 1:
			s += some(8, 1, 31) + " * *"
		case 2:
			s += some(3, 1, 31) + " " + some(4, 1, 12) + " " + some(1, 0, 7)
		default:
			s += "* * *"
		}
		list = append(list, s)
	}
	return list
}

// A face is the time that a clock shows.
type face struct {
	minute, hour, day, month, weekday int
	last                              bool // the last day of its month
}

func faceOf(t time.Time) face {
	hour, minute, _ := t.Clock()
	_, month, day := t.Date()
	return face{minute, hour, day, int(month), int(t.Weekday()), t.AddDate(0, 0, 1).Day() == 1}
}

// A reading finds the occurrences of a spec by reading a clock each minute. It reads the
// spec in its own way.
type reading struct {
	spec         string
	numbers      [5]map[int]bool
	stars        [5]bool
	last         bool // L
	followsClock bool
	want         []int64
}

func newReading(spec string) *reading {
	r := &reading{spec: spec}
	for i, text := range strings.Fields(spec) {
		r.numbers[i] = make(map[int]bool)
		r.stars[i] = text[0] == '*'
		for part := range strings.SplitSeq(text, ",") {
			if part == "L" {
				r.last = true
				continue
			}
			low, high, step := 0, 59, 1
			numbers, steps, ok := strings.Cut(part, "/")
			if ok {
				step, _ = strconv.Atoi(steps)
			}
			if numbers == "*" {
				low = []int{0, 0, 1, 1, 0}[i]
			} else if n, _ := fmt.Sscanf(numbers, "%d-%d", &low, &high); n == 1 {
				high = low
			}
			for x := low; x <= high; x += step {
				if i == 4 {
					r.numbers[i][x%7] = true
				} else {
					r.numbers[i][x] = true
				}
				if i == 4 && x >= 6 && numbers == "*" {
					break
				}
			}
		}
	}
	r.followsClock = r.stars[0] || r.stars[1]
	return r
}

// has reports whether the spec matches the time that the clock shows.
func (r *reading) has(x *face) bool {
	if !r.numbers[0][x.minute] || !r.numbers[1][x.hour] || !r.numbers[3][x.month] {
		return false
	}
	dom, dow := r.numbers[2][x.day] || r.last && x.last, r.numbers[4][x.weekday]
	if r.stars[2] || r.stars[4] {
		return dom && dow
	}
	return dom || dow
}

// read appends at, a Unix time, to want if the spec matches. now is what the clock
// shows at this time. shown lists the local times that this minute adds: none in a
// repeated hour, and several after a gap. A spec that follows the clock ignores them.
func (r *reading) read(at int64, now face, shown []face) {
	has := r.followsClock && r.has(&now)
	for i := range shown {
		has = has || !r.followsClock && r.has(&shown[i])
	}
	if has {
		r.want = append(r.want, at)
	}
}

// TICKLESS_CRON makes the test read 20 years instead of one.
func TestCron_AsAClockThatIsReadEachMinute(t *testing.T) {
	zones := []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo",
		"Asia/Beirut", "Antarctica/Troll", "America/St_Johns", "Atlantic/Azores", "America/Havana", "Asia/Gaza",
		"Africa/Casablanca", "America/Sao_Paulo", "America/Santiago", "Europe/Istanbul", "Asia/Tehran", "Europe/Dublin",
		"America/Caracas", "Asia/Pyongyang", "America/Nuuk"}
	ranges := [][2]int{{2011, 2012}, {2040, 2041}} // Samoa has no 30 December 2011; package time has no tables after 2037
	if os.Getenv("TICKLESS_CRON") != "" {
		ranges[0] = [2]int{2007, 2027}
	}
	all := specs(newRand(t))
	for i := range len(zones) * len(ranges) {
		zone, years := zones[i/len(ranges)], ranges[i%len(ranges)]
		if years[0] == 2040 && i%8 > 1 && os.Getenv("TICKLESS_CRON") == "" {
			continue
		}
		t.Run(fmt.Sprint(zone, years), func(t *testing.T) {
			t.Parallel()
			loc := place(t, zone)
			var readings []*reading
			var at [60][]*reading // the readings whose spec has this minute
			for _, f := range all {
				r := newReading(f)
				readings = append(readings, r)
				for m := range at {
					if r.numbers[0][m] {
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
				cron, at := parse(t, r.spec, zone), time.Unix(from-1, 0)
				for i, want := range r.want {
					got := cron.Next(at)
					if got.Unix() != want {
						t.Fatalf("occurrence %d of %+v after %v: got %v, not %v", i, r.spec, at.In(loc), got.In(loc), time.Unix(want, 0).In(loc))
					}
					at = got
				}
				require.GreaterOrEqual(t, cron.Next(at).Unix(), to, r.spec)
			}
		})
	}
}

func TestCron_FromAnyMoment(t *testing.T) {
	loc := place(t, "Australia/Lord_Howe")
	rnd := newRand(t)
	for _, spec := range specs(rnd) {
		cron := parse(t, spec, "Australia/Lord_Howe")
		begin := time.Date(2026, 4, 3, 0, 0, 0, 0, loc)
		next := cron.Next(begin)
		for at := begin; at.Before(begin.AddDate(0, 0, 4)); at = at.Add(time.Duration(rnd.Int64N(int64(10 * time.Minute)))) {
			for !next.After(at) {
				next = cron.Next(next)
			}
			require.True(t, next.Equal(cron.Next(at)), "%s after %v", spec, at)
		}
	}
}

func TestCron_Seconds(t *testing.T) {
	cron := parse(t, "10,50 59 * * * *", "")
	at := time.Date(1969, 12, 31, 22, 59, 10, 1, time.UTC) // before 1970 too
	for _, want := range []string{"22:59:50", "23:59:10", "23:59:50", "00:59:10"} {
		at = cron.Next(at)
		require.Equal(t, want, at.Format(time.TimeOnly))
		require.Equal(t, time.UTC, at.Location(), "the location of Next's argument")
	}
}

func TestCron_Never(t *testing.T) {
	always := parse(t, "* * * * *", "")
	for _, never := range []func(c *jobs.Cron){
		func(c *jobs.Cron) { c.Dom, c.Month = 1<<30, 1<<2 },
		func(c *jobs.Cron) { c.Dom, c.Month = 1<<31, 1<<4|1<<6|1<<9|1<<11 },
		func(c *jobs.Cron) { c.Minute = 0 },
		func(c *jobs.Cron) { c.Hour = 0 },
		func(c *jobs.Cron) { c.Month = 0 },
		func(c *jobs.Cron) { *c = jobs.Cron{} },
	} {
		for _, zone := range []string{"UTC", "Europe/Berlin", "Pacific/Apia"} {
			c := always
			never(&c)
			c.Location = place(t, zone)
			require.Zero(t, c.Next(epoch), "%+v", c)
		}
	}
	leap := parse(t, "0 0 29 2 *", "UTC")
	require.Equal(t, "2104-02-29", leap.Next(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)).Format(time.DateOnly))
	leapSunday := parse(t, "0 0 29 2 */7", "")
	require.Equal(t, "2032-02-29", leapSunday.Next(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)).Format(time.DateOnly))
}

// Two specs are equal if one can be written as the other.
func TestParseCron_Spellings(t *testing.T) {
	for _, same := range [][2]string{
		{"47 6 * * 7", "47 6 * * 0"}, // Debian's own crontab
		{"0 3 * * 5-7", "0 3 * * 0,5,6"},
		{"0 3 * * fri-SUN", "0 3 * * 0,5,6"},
		{"0 0 1 jan,Jul *", "0 0 1 1,7 *"},
		{"5/20 10-20/5 * * *", "5,25,45 10,15,20 * * *"},
		{"0 0 ? * 1", "0 0 * * 1"},
		{"@weekly", "0 0 * * 0"}, {"@Midnight", "0 0 * * *"}, {"@annually", "@yearly"}, {"@monthly", "0 0 0 1 * *"}, {"@hourly", "0 0 * * * *"},
		{" 0\t0 * * * ", "@daily"},
		{"0 0 l * *", "0 0 L * *"},
	} {
		require.Equal(t, parse(t, same[1], ""), parse(t, same[0], ""), same)
	}
	every, err := jobs.ParseCron("@every 1h30m", "")
	require.NoError(t, err)
	require.Equal(t, epoch.Add(90*time.Minute), every.Next(epoch))
	local, err := jobs.ParseCron("@daily", "Local")
	require.NoError(t, err)
	require.Equal(t, time.Local, local.(jobs.Cron).Location)
}

func TestParseCron_Refused(t *testing.T) {
	for spec, want := range map[string]string{
		"TZ=0":                      "it names a zone, which is an argument of its own", // robfig/cron panics
		"CRON_TZ=UTC 0 9 * * *":     "it names a zone, which is an argument of its own",
		"":                          "it has 0 fields, but must have 5, or 6 with seconds",
		"0 9 * *":                   "it has 4 fields, but must have 5, or 6 with seconds",
		"60 * * * *":                `minute: "60" is not from 0 to 59`,
		"* 24 * * *":                `hour: "24" is not from 0 to 23`,
		"* * 0 * *":                 `day of the month: "0" is not from 1 to 31`,
		"* * * 13 *":                `month: "13" is not from 1 to 12`,
		"* * * anf *":               `month: "anf" is not from 1 to 12`,
		"* * * * 8":                 `day of the week: "8" is not from 0 to 7`,
		"* * * * L":                 `day of the week: "L" is not from 0 to 7`,
		"5-1 * * * *":               `minute: the range "5-1" ends before it begins`,
		"*/0 * * * *":               `minute: the step "0" is not a positive number`,
		"*/ * * * *":                `minute: the step "" is not a positive number`,
		"+5 * * * *":                `minute: "+5" is not from 0 to 59`,
		", * * * *":                 `minute: "" is not from 0 to 59`,
		"1-2-3 * * * *":             `minute: "2-3" is not from 0 to 59`,
		"@reboot":                   "the word is not known",
		"@every 1ms":                `"1ms" is not a duration of at least a second`,
		"@every":                    "the word is not known",
		"0 0 30 2 *":                "it never matches",
		"0 0 31 4,6,9,11 *":         "it never matches",
		strings.Repeat("* ", 1<<20): "it is longer than 1000 bytes",
	} {
		_, err := jobs.ParseCron(spec, "")
		require.ErrorContains(t, err, want, "%.100q", spec)
		require.Less(t, len(err.Error()), 1000)
	}
	for _, zone := range []string{"Europe/Atlantis", "Europe/./Berlin", "Europe/././Berlin", "../Berlin", "/Europe/Berlin", "Europe//Berlin", "Europe/Berlin/",
		"europe/berlin", "posix/Europe/Berlin", "right/UTC", "localtime", "posixrules", "UTC\x00", "Etc/../UTC"} {
		_, err := jobs.ParseCron("@daily", zone)
		require.ErrorContains(t, err, "jobs: the zone ", zone)
	}
}

func FuzzParseCron(f *testing.F) {
	for _, spec := range append(specs(rand.New(rand.NewPCG(1, 1))), "TZ=0", "@every 1s", "*/99999999999999999999 * * * *", "1-7/3,L 2 ? 1 sun") {
		f.Add(spec, "Europe/Berlin")
	}
	f.Fuzz(func(t *testing.T, spec, zone string) {
		s, err := jobs.ParseCron(spec, zone)
		if err == nil && !s.Next(epoch).After(epoch) {
			t.Errorf("%q in %q: after %v comes %v", spec, zone, epoch, s.Next(epoch))
		}
	})
}

func BenchmarkCronNext(b *testing.B) {
	for name, spec := range map[string]string{"weekdays": "0 9 * * 1-5", "minutely": "* * * * *", "leapday": "0 0 29 2 *"} {
		b.Run("spec="+name, func(b *testing.B) {
			cron, at := parse(b, spec, "Europe/Berlin"), epoch
			for b.Loop() {
				if at = cron.Next(at); at.IsZero() || at.Year() > 2060 {
					at = epoch
				}
			}
		})
	}
}

// Public changes of clocks, by day and by night, by an hour and by less or more.
func TestCron_WhenTheClockIsChanged(t *testing.T) {
	for _, c := range []struct{ zone, begin, spec, want string }{
		{"Europe/Berlin", "2026-03-28 12:00", "30 2 * * *", "03-29 03:00 +02, 03-30 02:30 +02"},
		{"Europe/Berlin", "2026-10-24 12:00", "30 2 * * *", "10-25 02:30 +02, 10-26 02:30 +01"},
		{"Europe/Berlin", "2026-10-25 00:30", "0 * * * *", "10-25 01:00 +02, 10-25 02:00 +02, 10-25 02:00 +01, 10-25 03:00 +01"},
		{"America/New_York", "2027-03-14 00:45", "30 * * * *", "03-14 01:30 -05, 03-14 03:30 -04"},
		{"America/New_York", "2026-11-01 00:45", "*/30 0-6 * * *", "11-01 01:00 -04, 11-01 01:30 -04, 11-01 01:00 -05, 11-01 01:30 -05"},
		{"America/New_York", "2007-03-10 12:00", "30 2 * * *", "03-11 03:00 -04, 03-12 02:30 -04"},
		{"Australia/Lord_Howe", "2026-10-03 12:00", "0 2 * * *", "10-04 02:30 +11, 10-05 02:00 +11"},
		{"Australia/Lord_Howe", "2026-04-04 12:00", "45 1 * * *", "04-05 01:45 +11, 04-06 01:45 +10"},
		{"Pacific/Apia", "2011-12-29 12:00", "0 9 * * *", "12-31 00:00 +14, 12-31 09:00 +14"},
		{"Pacific/Kwajalein", "1993-08-20 12:00", "0 9 * * *", "08-22 00:00 +12, 08-22 09:00 +12"},
		{"America/Havana", "2026-10-31 12:00", "0 0,12 * * *", "11-01 00:00 -04, 11-01 12:00 -05"},
		{"America/Havana", "2026-03-07 12:00", "30 0 * * *", "03-08 01:00 -04, 03-09 00:30 -04"},
		{"America/Sao_Paulo", "2018-11-03 12:00", "0 0 * * *", "11-04 01:00 -02, 11-05 00:00 -02"},
		{"America/Santiago", "2022-09-10 12:00", "0 0 * * *", "09-11 01:00 -03, 09-12 00:00 -03"},
		{"Europe/Istanbul", "2016-10-29 12:00", "30 3 * * *", "10-30 03:30 +03, 10-31 03:30 +03"},
		{"Europe/Moscow", "2014-10-25 12:00", "30 1 * * *", "10-26 01:30 +04, 10-27 01:30 +03"},
		{"Europe/Moscow", "2011-03-26 12:00", "30 2 * * *", "03-27 03:00 +04, 03-28 02:30 +04"},
		{"America/Caracas", "2016-04-30 12:00", "45 2 * * *", "05-01 03:00 -04, 05-02 02:45 -04"},
		{"Asia/Pyongyang", "2018-05-04 12:00", "45 23 * * *", "05-05 00:00 +09, 05-05 23:45 +09"},
		{"Asia/Kathmandu", "1985-12-31 12:00", "10 0 * * *", "01-01 00:15 +05, 01-02 00:10 +05"},
		{"Europe/Dublin", "2026-10-24 12:00", "30 1 * * *", "10-25 01:30 +01, 10-26 01:30 +00"},
		{"Asia/Tehran", "2022-03-21 12:00", "30 0 * * *", "03-22 01:00 +04, 03-23 00:30 +04"},
		{"Africa/Cairo", "2023-04-27 12:00", "30 0 * * *", "04-28 01:00 +03, 04-29 00:30 +03"},
		{"Antarctica/Troll", "2026-03-28 12:00", "30 2 * * *", "03-29 03:00 +02, 03-30 02:30 +02"},
		{"Asia/Almaty", "2024-02-29 12:00", "30 23 * * *", "02-29 23:30 +06, 03-01 23:30 +05"},
		{"America/St_Johns", "2010-11-06 12:00", "30 23 * * *", "11-06 23:30 -02, 11-07 23:30 -03"},
		{"America/Nuuk", "2023-03-25 12:00", "30 22 * * *", "03-25 23:00 -02, 03-26 22:30 -02"},
	} {
		at, err := time.ParseInLocation("2006-01-02 15:04", c.begin, place(t, c.zone))
		require.NoError(t, err)
		var got []string
		for range strings.Count(c.want, ",") + 1 {
			at = parse(t, c.spec, c.zone).Next(at)
			got = append(got, at.Format("01-02 15:04 -07"))
		}
		require.Equal(t, c.want, strings.Join(got, ", "), "%s in %s", c.spec, c.zone)
	}
}
