package timingwheel

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/tickless/tickless/bucket"
)

// Contains reports whether id identifies an entry.
func (w *Wheel[T]) Contains(id ID) bool {
	_, ok := w.Deadline(id)
	return ok
}

func newWheel[T any](tb testing.TB, tick int64, size int, start int64, opts ...Option) *Wheel[T] {
	tb.Helper()
	w, err := New[T](tick, size, start, opts...)
	require.NoError(tb, err)
	return w
}

// add adds v. It fails if v is already due.
func add[T any](tb testing.TB, w *Wheel[T], deadline int64, v T) ID {
	tb.Helper()
	id, ok := w.Add(deadline, v)
	if !ok {
		tb.Fatalf("Add(%d): due already", deadline)
	}
	return id
}

// advance hands out all entries that are due at now.
func advance[T any](w *Wheel[T], now int64) []T {
	out := make([]Expired[T], 64)
	values := []T{}
	for more := true; more; {
		var n int
		n, more = w.Advance(now, out)
		for _, e := range out[:n] {
			values = append(values, e.Value)
		}
	}
	return values
}

// where returns the level of an entry and the time at which its slot begins.
func where[T any](tb testing.TB, w *Wheel[T], id ID) (level int, begin int64) {
	tb.Helper()
	i, ok := w.arena.Find(id)
	if !ok {
		tb.Fatal("no such entry")
	}
	level = int(w.arena.Place(i) >> w.slotBits)
	s := uint(level) * w.slotBits
	b, lead := w.bucketOf(i), int64(0)
	if w.arena.Load(b) == largeBucketLoad {
		lead = w.leadOf(1 << s)
	}
	return level, w.converter.timeOfTick((w.arena.Expiration(b) + lead) >> s << s)
}

func TestNew_RefusesBadArguments(t *testing.T) {
	for _, c := range []struct {
		tick  int64
		size  int
		start int64
		err   error
	}{
		{0, 256, 0, ErrTick},
		{-1, 256, 0, ErrTick},
		{math.MinInt64, 256, 0, ErrTick},
		{1, 0, 0, ErrSize},
		{1, 1, 0, ErrSize},
		{1, 3, 0, ErrSize},
		{1, 255, 0, ErrSize},
		{1, 257, 0, ErrSize},
		{1, 2 * MaxSize, 0, ErrSize},
		{1, math.MaxInt, 0, ErrSize},
		{1, -1, 0, ErrSize},
		{1, -2, 0, ErrSize},
		{1, math.MinInt, 0, ErrSize},
		{1, 256, -1, ErrStart},
		{1, 256, math.MinInt64, ErrStart},

		{1, 2, 0, nil},
		{1, MaxSize, 0, nil},
		{math.MaxInt64, 2, math.MaxInt64, nil},
		{1, 2, math.MaxInt64, nil},
	} {
		t.Run(fmt.Sprintf("tick=%d/size=%d/start=%d", c.tick, c.size, c.start), func(t *testing.T) {
			w, err := New[int](c.tick, c.size, c.start)
			require.Equal(t, c.err == nil, w != nil)
			for _, e := range []error{ErrTick, ErrSize, ErrStart} {
				if e == c.err {
					require.ErrorIs(t, err, e)
				} else {
					require.NotErrorIs(t, err, e)
				}
			}
		})
	}
}

func TestWheel_Empty(t *testing.T) {
	w := newWheel[int](t, 10, 4, 1234)
	require.EqualValues(t, 1230, w.Clock())
	require.Zero(t, w.Len())
	require.Zero(t, w.Levels())
	require.Zero(t, w.Chunks())
	_, ok := w.Next()
	require.False(t, ok)
	require.Empty(t, advance(w, 5678))
	require.EqualValues(t, 5670, w.Clock())
	require.Empty(t, advance(w, 100), "a time that is over")
	require.EqualValues(t, 5670, w.Clock(), "the clock never goes back")
	w.Each(func(Entry[int]) { t.Error("there is nothing") })

	_, ok = w.Remove(ID{})
	require.False(t, ok)
	require.False(t, w.Move(ID{}, math.MaxInt64))
	require.False(t, w.Contains(ID{}))
	_, ok = w.Deadline(ID{})
	require.False(t, ok)
}

// This is the example of the package comment, line by line.
func TestWheel_WorkedExample(t *testing.T) {
	type slot struct {
		level      int
		expiration int64
	}
	w := newWheel[int64](t, 1, 4, 0)
	ids := map[int64]ID{}
	for _, c := range []struct {
		add  int64
		want slot
	}{
		{2, slot{0, 2}},
		{7, slot{1, 4}},
		{21, slot{2, 16}},
		{23, slot{2, 16}},
	} {
		ids[c.add] = add(t, w, c.add, c.add)
		level, expiration := where(t, w, ids[c.add])
		require.Equal(t, c.want, slot{level, expiration}, "add %d", c.add)
		require.Equal(t, c.want.level+1, w.Levels(), "add %d: a level is made when first needed", c.add)
	}
	for _, c := range []struct {
		tick  int64
		due   []int64
		next  int64          // 0: none
		moved map[int64]slot // the entries that move down, and their new slots
	}{
		{1, []int64{}, 2, nil},
		{2, []int64{2}, 7, nil},
		{3, []int64{}, 7, nil},
		{7, []int64{7}, 21, nil},
		{16, []int64{}, 21, nil},
		{21, []int64{21}, 23, map[int64]slot{23: {0, 23}}},
		{23, []int64{23}, 0, nil},
	} {
		before := w.Cascaded()
		require.Equal(t, c.due, advance(w, c.tick), "tick %d", c.tick)
		next, ok := w.Next()
		require.Equal(t, c.next != 0, ok, "tick %d", c.tick)
		if ok {
			require.Equal(t, c.next, next, "tick %d", c.tick)
		}
		require.EqualValues(t, len(c.moved), w.Cascaded()-before, "tick %d", c.tick)
		for v, want := range c.moved {
			level, expiration := where(t, w, ids[v])
			require.Equal(t, want, slot{level, expiration}, "tick %d: %d goes down", c.tick, v)
		}
	}
	require.Zero(t, w.Len())
}

// The slot of each deadline is as in the package comment.
func TestWheel_WorkedExampleSlots(t *testing.T) {
	for deadline := int64(1); deadline < 64; deadline++ {
		w := newWheel[int](t, 1, 4, 0)
		level, expiration := where(t, w, add(t, w, deadline, 0))
		switch {
		case deadline < 4:
			require.Equal(t, []int64{0, deadline}, []int64{int64(level), expiration}, "deadline %d", deadline)
		case deadline < 16:
			require.Equal(t, []int64{1, deadline / 4 * 4}, []int64{int64(level), expiration}, "deadline %d", deadline)
		default:
			require.Equal(t, []int64{2, deadline / 16 * 16}, []int64{int64(level), expiration}, "deadline %d", deadline)
		}
		require.Equal(t, level+1, w.Levels())
	}
}

// Tick 1 s, 32 slots a level: seven days take four levels. An entry with a delay of 7,100
// s moves down through its levels.
func TestWheel_LayeredSeconds(t *testing.T) {
	const s = int64(time.Second)
	w := newWheel[string](t, s, 32, 0)
	week := add(t, w, 7*24*3600*s, "week")
	level, expiration := where(t, w, week)
	require.Equal(t, 3, level)
	require.EqualValues(t, 18*32768*s, expiration)

	// Make every bucket that this entry moves through large, so that it expires before its
	// slot begins.
	id := add(t, w, 7100*s, "7100")
	for range largeBucketLoad {
		add(t, w, 7100*s, "")
	}
	for _, c := range []struct {
		level      int
		expiration int64
	}{
		{2, 6144 - 256}, // too early for level 1, which reaches 32 slots of 32 s
		{2, 6144},       // 6 slots of 1,024 s; 956 s remain
		{1, 7072 - 8},   // too early for level 0
		{1, 7072},       // 221 slots of 32 s; 28 s remain
		{0, 7100},
	} {
		level, _ := where(t, w, id)
		require.Equal(t, c.level, level)
		next, ok := w.Next()
		require.True(t, ok)
		require.Equal(t, c.expiration*s, next)
		require.Empty(t, advance(w, next-1), "nothing happens a nanosecond before")
		if c.level > 0 {
			require.Empty(t, advance(w, next), "level %d", c.level)
		}
	}
	require.EqualValues(t, 4*(1+largeBucketLoad), w.Cascaded())
	require.Equal(t, "7100", advance(w, 7100*s)[0])
	require.Empty(t, advance(w, 7*24*3600*s-1))
	require.Equal(t, []string{"week"}, advance(w, 7*24*3600*s))
}

// With two slots and a tick of 1, each bit of a distance is a level.
func TestWheel_AllLevels(t *testing.T) {
	for _, size := range []int{2, 4, 8, 256, 4096, MaxSize} {
		t.Run(fmt.Sprint("size=", size), func(t *testing.T) {
			w := newWheel[int64](t, 1, size, 0)
			bits := int(w.slotBits)
			var want []int64
			for n := 0; n < 63; n++ {
				deadline := int64(1) << n
				level, expiration := where(t, w, add(t, w, deadline, deadline))
				require.Equal(t, n/bits, level, "deadline 1<<%d", n)
				require.Equal(t, deadline, expiration)
				require.Equal(t, level+1, w.Levels())
				want = append(want, deadline)
			}
			add(t, w, math.MaxInt64, math.MaxInt64)
			want = append(want, math.MaxInt64)
			require.Equal(t, 62/bits+1, w.Levels())
			checkWheel(t, w)

			var got []int64
			for next, ok := w.Next(); ok; next, ok = w.Next() {
				got = append(got, advance(w, next)...)
				checkWheel(t, w)
			}
			got = append(got, advance(w, math.MaxInt64)...)
			require.Equal(t, want, got)
			require.Equal(t, int64(math.MaxInt64), w.Clock())
		})
	}
}

// tokio issue 5183. An entry whose deadline is exactly on the border of a level is handed
// out at its tick, or can be removed.
func TestWheel_DeadlineOnTheBorderOfALevel(t *testing.T) {
	for _, tick := range []int64{1, 10} {
		for _, size := range []int64{2, 8, 64} {
			for _, clock := range []int64{0, 1, size - 1, size, size + 1, size*size - 1, size * size, 5*size*size*size - 1, 5 * size * size * size} {
				for _, span := range []int64{size, size * size, size * size * size, size * size * size * size} {
					for d := int64(-2); d <= 2; d++ {
						// The deadlines lie near the clock plus one full span, and near
						// the next multiple of the span.
						for _, at := range []int64{clock + span + d, (clock/span+1)*span + d} {
							if at <= clock {
								continue
							}
							w := newWheel[int64](t, tick, int(size), clock*tick)
							add(t, w, at*tick, at)
							removed := add(t, w, at*tick, -1)
							checkWheel(t, w)
							if got := advance(w, at*tick-1); len(got) != 0 {
								t.Fatalf("size %d, clock %d, deadline %d: early by %d", size, clock, at, at*tick-w.Clock())
							}
							checkWheel(t, w)
							_, ok := w.Remove(removed)
							require.True(t, ok)
							if got := advance(w, at*tick); !slices.Equal(got, []int64{at}) {
								t.Fatalf("size %d, clock %d, deadline %d: got %v", size, clock, at, got)
							}
							checkWheel(t, w)
						}
					}
				}
			}
		}
	}
}

// An entry with a deadline of math.MaxInt64 is not early. (Kafka fires it immediately, or
// fires nothing any more.)
func TestWheel_DeadlineMaxInt64(t *testing.T) {
	const forever = math.MaxInt64
	for _, tick := range []int64{1, 2, 3, 7, 10, 1e6, 1e8, 1e9, 1<<62 - 1, 1 << 62, forever - 1, forever} {
		for _, size := range []int{2, 256} {
			for _, start := range []int64{0, 12345, 1 << 40, forever / 2, forever - 1e9, forever - 1} {
				t.Run(fmt.Sprintf("tick=%d/size=%d/start=%d", tick, size, start), func(t *testing.T) {
					w := newWheel[string](t, tick, size, start)
					removed := add(t, w, forever, "removed")
					add(t, w, forever, "forever")
					checkWheel(t, w)
					_, ok := w.Next()
					require.False(t, ok, "nothing is due before")
					require.Empty(t, advance(w, forever-1))
					checkWheel(t, w)
					_, ok = w.Remove(removed)
					require.True(t, ok)

					// A near deadline still works while the far one is pending.
					got := advance(w, forever)
					if forever%tick == 0 {
						require.Equal(t, []string{"forever"}, got)
					} else {
						// The deadline rounds up to a tick beyond the range.
						require.Empty(t, got)
						require.Equal(t, 1, w.Len())
					}
				})
			}
		}
	}
}

// A wheel with a deadline of math.MaxInt64 still serves near deadlines.
func TestWheel_FarDeadlineWedgesNothing(t *testing.T) {
	for _, far := range []int64{math.MaxInt64, math.MaxInt64 - 1, 17e17, 1 << 62} {
		w := newWheel[int64](t, 1e6, 256, 0)
		add(t, w, far, far)
		for now := int64(0); now < 1e12; now += 1e9 {
			add(t, w, now+3e6, now)
			require.Empty(t, advance(w, now+2e6))
			require.Equal(t, []int64{now}, advance(w, now+3e6))
		}
		require.Equal(t, 1, w.Len())
	}
}

// If no bucket is large, Next is when the first entry is due: entries that only move down
// cause no wake-up. (Kafka PR 13820: a far timer must not make the poller spin.)
func TestWheelNext_IsALowerBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed(t), 0))
	for range 300 {
		tick := 1 + rng.Int64N(1<<rng.IntN(30))
		size := 2 << rng.IntN(9)
		start := rng.Int64N(1 << rng.IntN(50))
		w := newWheel[int64](t, tick, size, start)
		var deadlines []int64
		for range 1 + rng.IntN(40) {
			d := start + 1 + rng.Int64N(1<<rng.IntN(50))
			if _, ok := w.Add(d, d); ok {
				deadlines = append(deadlines, d)
			}
		}
		slices.Sort(deadlines)
		wakeups := 0
		n := 0
		for next, ok := w.Next(); ok; next, ok = w.Next() {
			wakeups++
			require.Equal(t, w.converter.timeOfTick(w.converter.ceilTick(deadlines[n], 0)), next)
			require.Empty(t, advance(w, next-1))
			for _, d := range advance(w, next) {
				require.Equal(t, w.converter.ceilTick(deadlines[n], 0), w.converter.ceilTick(d, 0), "in the order of ticks")
				require.GreaterOrEqual(t, next, d, "never early")
				require.Less(t, next-d, tick, "late by less than a tick")
				n++
			}
		}
		require.Equal(t, len(deadlines), n)
		require.LessOrEqual(t, wakeups, n)
	}
}

// Next finds the first entry, whether its bucket is coarse or fine. (In glommio one
// bucket hid the other.)
func TestWheelNext_CoarseBucketHidesNothing(t *testing.T) {
	for _, c := range []struct {
		name  string
		adds  [][2]int64 // at, deadline
		wakes []int64
	}{
		{"coarse first, then an earlier fine one", [][2]int64{{0, 300}, {250, 254}}, []int64{254, 300}},
		{"coarse first, then a fine one behind its expiration", [][2]int64{{0, 300}, {250, 258}}, []int64{258, 300}},
		{"coarse and fine at the same time", [][2]int64{{0, 300}, {250, 256}}, []int64{256, 300}},
		{"two in one coarse bucket", [][2]int64{{0, 300}, {0, 260}}, []int64{260, 300}},
		{"coarser still", [][2]int64{{0, 70000}, {65500, 65530}, {65500, 65537}, {65500, 66000}}, []int64{65530, 65537, 66000, 70000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWheel[int64](t, 1, 256, 0)
			due := map[int64]bool{}
			for _, a := range c.adds {
				w.Observe(a[0])
				add(t, w, a[1], a[1])
				due[a[1]] = true
			}
			for _, wake := range c.wakes {
				next, ok := w.Next()
				require.True(t, ok)
				require.Equal(t, wake, next)
				got := advance(w, next)
				require.True(t, due[wake])
				require.Equal(t, []int64{wake}, got)
			}
			require.Zero(t, w.Len())
		})
	}
}

// After a long idle time, a near deadline goes to the lowest level. In Kafka it does not,
// because only a bucket that expires moves the clock.
func TestWheel_NearDeadlineAfterALongIdleSpell(t *testing.T) {
	const ms = 1_000_000
	idle := int64(9 * time.Second)
	for _, c := range []struct {
		name   string
		pass   func(w *Wheel[int])
		levels int
	}{
		{"Observe", func(w *Wheel[int]) { w.Observe(idle) }, 1},
		{"Advance", func(w *Wheel[int]) { advance(w, idle) }, 1},
		{"neither", func(*Wheel[int]) {}, 5}, // as in Kafka
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWheel[int](t, ms, 8, 0)
			c.pass(w)
			id := add(t, w, idle+ms, 1)
			require.Equal(t, c.levels, w.Levels())
			level, _ := where(t, w, id)
			require.Equal(t, c.levels-1, level)
			require.Empty(t, advance(w, idle+ms-1))
			require.Equal(t, []int{1}, advance(w, idle+ms))
		})
	}
}

// Observe is called several times while a far deadline is pending.
func TestWheelObserve_WithAFarDeadlinePending(t *testing.T) {
	w := newWheel[int](t, 1, 256, 0)
	add(t, w, 1<<40, -1)
	levels := w.Levels()
	rng := rand.New(rand.NewPCG(5, 5))
	now := int64(0)
	for k := range 2000 {
		now += rng.Int64N(1 << rng.IntN(28))
		w.Observe(now)
		id := add(t, w, now+1+rng.Int64N(200), k)
		level, _ := where(t, w, id)
		require.Zero(t, level, "at %d, with the clock at %d", now, w.Clock())
		require.Equal(t, levels, w.Levels())
		if k%3 == 0 {
			w.Remove(id)
		}
		next, ok := w.Next()
		require.True(t, ok)
		now = next
		advance(w, now)
		require.Equal(t, 1, w.Len())
	}
}

func TestWheelObserve_PassesNoQueuedBucket(t *testing.T) {
	w := newWheel[int](t, 1, 8, 0)
	add(t, w, 100, 100)   // level 2, in the slot of 64
	id := add(t, w, 5, 5) // level 0
	w.Observe(4)
	require.EqualValues(t, 4, w.Clock())
	for _, now := range []int64{5, 6, 1000, math.MaxInt64} {
		w.Observe(now)
		require.EqualValues(t, 4, w.Clock(), "Observe(%d)", now)
	}
	w.Observe(2)
	require.EqualValues(t, 4, w.Clock(), "never back")
	w.Remove(id)
	w.Observe(20)
	require.EqualValues(t, 4, w.Clock(), "an emptied bucket is queued until it expires")
	require.Empty(t, advance(w, 10))
	w.Observe(63)
	require.EqualValues(t, 63, w.Clock())
	w.Observe(99) // into the slot of 64
	require.EqualValues(t, 99, w.Clock())
	w.Observe(100)
	require.EqualValues(t, 99, w.Clock())

	// Observe moves nothing while a drain is unfinished.
	w = newWheel[int](t, 1, 8, 0)
	add(t, w, 3, 1)
	add(t, w, 3, 2)
	n, more := w.Advance(3, make([]Expired[int], 1))
	require.Equal(t, 1, n)
	require.True(t, more)
	w.Observe(1000)
	require.EqualValues(t, 3, w.Clock())
	require.Equal(t, []int{2}, advance(w, 3))
	w.Observe(1000)
	require.EqualValues(t, 1000, w.Clock())
}

// Most calls of Observe do nothing. Nevertheless the clock lags by less than an eighth of
// a turn of the lowest level.
func TestWheelObserve_LagsByLessThanAnEighthOfATurn(t *testing.T) {
	for _, size := range []int64{2, 4, 8, 256} {
		w := newWheel[int](t, 10, int(size), 0)
		for now := int64(0); now < 100_000; now++ {
			w.Observe(now)
			if lag := now - w.Clock(); lag < 0 || lag >= max(1, size/8)*10 {
				t.Fatalf("size %d: at %d the clock is %d", size, now, w.Clock())
			}
		}
	}
	w := newWheel[int](t, 1, 256, math.MaxInt64-1000)
	for now := int64(math.MaxInt64 - 1000); now > 0; now += 7 { // until it wraps
		w.Observe(now)
		require.LessOrEqual(t, w.Clock(), now)
		require.Less(t, now-w.Clock(), int64(32))
	}
}

func TestWheel_TagsComeBack(t *testing.T) {
	w := newWheel[int](t, 1, 4, 0)
	want := map[int]uint8{}
	for k := range 200 {
		tag := uint8(k % (bucket.MaxTag + 1))
		id, ok := w.AddTagged(int64(1+k*k), 0, k, tag) // entries on all levels from 0
		require.True(t, ok)
		want[k] = tag
		got, ok := w.Tag(id)
		require.True(t, ok)
		require.Equal(t, tag, got)
		if k%5 == 0 {
			require.True(t, w.Move(id, int64(2+2*k*k)))
		}
	}
	id, ok := w.AddTagged(0, 0, 0, 1)
	require.False(t, ok)
	_, ok = w.Tag(id)
	require.False(t, ok)
	w.Each(func(e Entry[int]) { require.Equal(t, want[e.Value], e.Tag) })
	for n, more := 0, true; more; {
		var out [7]Expired[int]
		n, more = w.Advance(1<<20, out[:])
		for _, e := range out[:n] {
			require.Equal(t, want[e.Value], e.Tag)
			delete(want, e.Value)
		}
	}
	require.Empty(t, want)
}

func TestWheelEach_SeesEveryEntryOnce(t *testing.T) {
	w := newWheel[int](t, 1, 4, 0)
	want := []Expired[int]{}
	for k := range 100 {
		d := int64(1 + k*k/4)
		e := Expired[int]{Value: k, Deadline: d, Due: d, Tag: uint8(k % 4)}
		_, ok := w.AddTagged(e.Deadline, 0, e.Value, e.Tag)
		require.True(t, ok)
		want = append(want, e)
	}
	all := func() []Expired[int] {
		got := []Expired[int]{}
		w.Each(func(e Entry[int]) { got = append(got, e.Expired) })
		slices.SortFunc(got, func(a, b Expired[int]) int { return cmp.Compare(a.Value, b.Value) })
		return got
	}
	require.Equal(t, want, all())
	// Tag also works for entries in the list being drained.
	var out [3]Expired[int]
	n, more := w.Advance(5, out[:])
	require.Equal(t, 3, n)
	require.True(t, more)
	require.Equal(t, want[3:], all())
	require.Equal(t, 97, w.Len())
}

func TestWheelDeadline_IsNotRounded(t *testing.T) {
	w := newWheel[int](t, 100, 8, 0)
	id := add(t, w, 4321, 1)
	d, ok := w.Deadline(id)
	require.True(t, ok)
	require.EqualValues(t, 4321, d)
	require.True(t, w.Move(id, 4399))
	d, ok = w.Deadline(id)
	require.True(t, ok)
	require.EqualValues(t, 4399, d)
	var out [1]Expired[int]
	n, _ := w.Advance(4399, out[:])
	require.Zero(t, n, "a tick is handed out when it is complete")
	n, _ = w.Advance(4400, out[:])
	require.Equal(t, 1, n)
	require.EqualValues(t, 4399, out[0].Deadline)
	require.False(t, w.Contains(id))
	_, ok = w.Deadline(id)
	require.False(t, ok)
}

func heapInUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Memory shrinks after a peak.
func TestWheel_MemoryFallsAfterAPeak(t *testing.T) {
	const n = 1_000_000
	for _, how := range []string{"handed out", "removed"} {
		t.Run(how, func(t *testing.T) {
			ids := make([]ID, n)
			out := make([]Expired[int64], 256)
			before := heapInUse()
			w := newWheel[int64](t, 1e6, 256, 0)
			for k := range ids {
				ids[k], _ = w.Add(1+rand.Int64N(3600e9), int64(k))
			}
			peak := heapInUse() - before
			require.Equal(t, n, w.Len())
			require.LessOrEqual(t, peak, uint64(n*(24+8)*105/100))
			slots := n + w.Levels()*(256+1) // a bucket takes a slot too
			require.Equal(t, (slots+bucket.ChunkSize-1)/bucket.ChunkSize, w.Chunks())
			if how == "removed" {
				rand.Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
				for _, id := range ids {
					w.Remove(id)
				}
			} else {
				for more := true; more; {
					_, more = w.Advance(3600e9, out)
				}
			}
			require.Zero(t, w.Len())
			require.LessOrEqual(t, w.Chunks(), w.Levels()+1, "the chunks of the levels' buckets, and a spare")
			left := int64(heapInUse()) - int64(before)
			require.Less(t, left, int64(512<<10))
			t.Logf("peak %d bytes an entry, %d KiB left", peak/n, left>>10)
			runtime.KeepAlive(w)
			runtime.KeepAlive(ids)
		})
	}
}

type payload struct {
	_ [64]byte
	_ *int
}

//go:noinline
func addWeak(tb testing.TB, w *Wheel[*payload], deadline int64) (ID, weak.Pointer[payload]) {
	p := new(payload)
	return add(tb, w, deadline, p), weak.Make(p)
}

// The wheel keeps no reference to a value that it handed out or removed.
func TestWheel_LetsGoOfPayloads(t *testing.T) {
	w := newWheel[*payload](t, 1, 8, 0)
	const n = 2000
	var ids [n]ID
	var ptrs [n]weak.Pointer[payload]
	for k := range n {
		ids[k], ptrs[k] = addWeak(t, w, int64(1+k))
	}
	for k := 1; k < n; k += 2 {
		w.Remove(ids[k])
	}
	out := make([]Expired[*payload], 64)
	for more := true; more; {
		_, more = w.Advance(n/2, out)
	}
	clear(out)
	runtime.GC()
	for k := range n {
		gone := k%2 == 1 || k+1 <= n/2
		require.Equal(t, gone, ptrs[k].Value() == nil, "entry %d", k)
	}
	runtime.KeepAlive(w)
}

func TestWheel_AllocatesNothingInSteadyState(t *testing.T) {
	const n = 10_000
	rng := rand.New(rand.NewPCG(6, 6))
	offered := 0
	for _, queue := range []bool{false, true} {
		var opts []Option
		if queue {
			opts = append(opts, WithQueue(func(bucket.Bucket, uint32, int64) { offered++ }))
		}
		w := newWheel[int](t, 1e6, 256, 0, opts...)
		ids := make([]ID, n)
		for k := range ids {
			ids[k] = add(t, w, 1+rng.Int64N(100e9), k)
		}
		add(t, w, math.MaxInt64, -1) // makes all levels
		out := make([]Expired[int], 64)
		now := int64(0)
		for k := range n { // fills the spare chunk, so that no chunk is made
			w.Remove(ids[k])
			ids[k] = add(t, w, 1+rng.Int64N(100e9), k)
		}
		// AllocsPerRun rounds the average of 5 runs down. So it ignores one allocation by
		// the runtime, but not one in each run.
		require.Zero(t, testing.AllocsPerRun(5, func() {
			for range 5000 {
				k := rng.IntN(n)
				w.Remove(ids[k])
				w.Observe(now)
				ids[k], _ = w.Add(now+1e6+rng.Int64N(100e9), k)
				w.Move(ids[rng.IntN(n)], now+1e6+rng.Int64N(100e9))
				w.Next()
				if queue {
					continue
				}
				now += 1e6
				for more := true; more; {
					var n int
					n, more = w.Advance(now, out)
					for _, e := range out[:n] {
						ids[e.Value], _ = w.Add(now+1e6+rng.Int64N(100e9), e.Value)
					}
				}
			}
		}), "with a queue: %v", queue)
	}
	require.NotZero(t, offered)
}

// All methods work on a wheel that was never used. Such a wheel has no memory for entries
// or buckets.
func TestWheel_UnusedHoldsNothing(t *testing.T) {
	w, err := New[int](1, 256, 0)
	require.NoError(t, err)
	out := make([]Expired[int], 1)
	w.Observe(1000)
	_, ok := w.Next()
	require.False(t, ok)
	n, more := w.Drain(out)
	require.Zero(t, n)
	require.False(t, more)
	n, more = w.Advance(2000, out)
	require.Zero(t, n)
	require.False(t, more)
	w.Each(func(Entry[int]) { t.Error("an entry") })
	w.Expire(1, 2000)
	require.False(t, w.Discard(1))
	require.False(t, w.Contains(ID{}))
	require.EqualValues(t, 2000, w.Clock())
	require.Zero(t, w.arena)
}

// An entry moves down once for each level. If its bucket is large and it is due near the
// end of the slot, it first goes back into the bucket.
func TestWheel_AnEntryMovesAtMostTwiceALevel(t *testing.T) {
	for _, size := range []int{2, 4, 16} {
		for _, atEnd := range []bool{false, true} {
			w := newWheel[int](t, 1, size, 0)
			const n = 3 * largeBucketLoad // a large bucket
			var moves uint64
			for level, begin := 0, int64(1); level < 4; level, begin = level+1, begin*int64(size) {
				for k := range n {
					deadline := begin
					if atEnd {
						deadline = 2*begin - 1
					}
					at, _ := where(t, w, add(t, w, deadline, k))
					moves += uint64(at)
				}
			}
			for next, ok := w.Next(); ok; next, ok = w.Next() {
				advance(w, next)
			}
			require.Zero(t, w.Len())
			if atEnd {
				require.NotZero(t, w.Cascaded())
				moves *= 2
			}
			require.LessOrEqual(t, w.Cascaded(), moves, "size %d", size)
		}
	}
}
