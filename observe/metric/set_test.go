package metric

import (
	"iter"
	"slices"
	"testing"
)

// things is a Source whose things a test adds and removes.
type things struct {
	thing   *Thing
	objects []Object
}

func (s *things) source() Source {
	return Source{Thing: s.thing, Objects: func() iter.Seq[Object] { return slices.Values(s.objects) }}
}

func (s *things) add(id int, name string) {
	s.objects = append(s.objects, Object{Name: name, ID: id, Read: func() any { return id }})
}

func (s *things) remove(id int) {
	s.objects = slices.DeleteFunc(s.objects, func(o Object) bool { return o.ID == id })
}

func names(set *Set) map[string]any {
	all := make(map[string]any)
	for _, r := range set.Read() {
		all[r.Name] = r.Sample
	}
	return all
}

func TestSet_NamesAreUnique(t *testing.T) {
	s := &things{thing: NewTable[int]("thing", "thing").Thing()}
	set := NewSet([]Source{s.source()})
	expect := func(situation string, want map[string]any) {
		t.Helper()
		readings := set.Read()
		got := names(set)
		if len(readings) != len(want) || len(got) != len(want) {
			t.Fatalf("%s: got %v, want %v", situation, got, want)
		}
		for name, id := range want {
			if got[name] != id {
				t.Errorf("%s: got %v, want %v", situation, got, want)
			}
		}
	}
	s.add(1, "a")
	s.add(2, "a")
	s.add(3, "b")
	expect("at first", map[string]any{"a": 1, "a#2": 2, "b": 3})
	s.remove(1)
	expect("the first gone", map[string]any{"a#2": 2, "b": 3})
	s.add(4, "a")
	expect("another instead", map[string]any{"a#2": 2, "b": 3, "a": 4})
	s.add(5, "a#2")
	expect("a name that is taken", map[string]any{"a#2": 2, "b": 3, "a": 4, "a#2#2": 5})
	s.add(6, "\xff")
	expect("bytes that are not UTF-8", map[string]any{"a#2": 2, "b": 3, "a": 4, "a#2#2": 5, "\uFFFD": 6})
}

func TestSet_ReadsEachThingOnce(t *testing.T) {
	s := &things{thing: NewTable[int]("thing", "thing").Thing()}
	s.add(1, "a")
	other := &things{thing: s.thing}
	other.add(1, "by another name")
	other.add(2, "b")
	got := names(NewSet([]Source{s.source(), other.source()}))
	if len(got) != 2 || got["a"] != 1 || got["b"] != 2 {
		t.Errorf("got %v, want a and b", got)
	}
}

// A thing of a Fixed source has the same name in every Set, even if another thing with
// this name is read first.
func TestSet_FixedThingsHaveTheirNamesFirst(t *testing.T) {
	s := &things{thing: NewTable[int]("thing", "thing").Thing()}
	s.add(1, "a")
	one := func(id int, name string) Source {
		return One(s.thing, Object{Name: name, ID: id, Read: func() any { return id }})
	}
	sources := []Source{s.source(), one(2, "a"), one(3, "a")}
	for range 2 {
		got := names(NewSet(sources))
		if len(got) != 3 || got["a"] != 2 || got["a#2"] != 3 || got["a#3"] != 1 {
			t.Errorf("got %v, want a, a#2 and a#3", got)
		}
		s.add(1, "a") // does not change the names
	}
}

func TestNewSet_RefusesTheZeroSource(t *testing.T) {
	defer func() {
		want := "observe: source 2 is the zero Source: the functions of package observe make Sources"
		if v := recover(); v != want {
			t.Errorf("got the panic %v, want %q", v, want)
		}
	}()
	s := &things{thing: NewTable[int]("thing", "thing").Thing()}
	NewSet([]Source{s.source(), {}})
}

// If reading a thing panics, the failure is counted, and the other things are read.
func TestSet_APanicIsAnError(t *testing.T) {
	s := &things{thing: NewTable[int]("thing", "thing").Thing()}
	broken := true
	s.objects = []Object{{Name: "bad", ID: 1, Read: func() any {
		if broken {
			panic("on purpose")
		}
		return 7
	}, Notes: func() []Note { panic("in the notes") }}}
	s.add(2, "good")
	set := NewSet([]Source{s.source()})
	read := func(wantErr string, wantFailures float64) {
		t.Helper()
		all := set.Read()
		if len(all) != 2 || all[1].Name != "good" || all[1].Sample != 2 || all[1].Err != nil {
			t.Fatalf("got %+v", all)
		}
		bad := all[0]
		err := ""
		if bad.Err != nil {
			err = bad.Err.Error()
		}
		if err != wantErr {
			t.Errorf("got the error %q, want %q", err, wantErr)
		}
		bad.Values(&bad.Thing.Metrics[0], func(_ string, value float64) {
			if value != wantFailures {
				t.Errorf("%v failures, want %v", value, wantFailures)
			}
		})
		if notes := bad.Notes(); len(notes) != 1 || notes[0].Text != "in the notes" {
			t.Errorf("got the notes %v", notes)
		}
	}
	read("observe: panic: on purpose", 1)
	read("observe: panic: on purpose", 2)
	broken = false
	read("", 2)
	s.remove(1)
	set.Read()
	s.objects = append([]Object{{Name: "bad", ID: 1, Read: func() any { return 7 }, Notes: func() []Note { panic("in the notes") }}}, s.objects...)
	read("", 0) // the counts of removed things are dropped
}
