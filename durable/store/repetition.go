package store

import (
	"encoding/binary"
	"strings"
)

// A Repetition says when a repeating task is due, as far as stores need to know it.
type Repetition struct {
	// Pattern is equal for two tasks that are due at the same times, apart from End.
	Pattern string
	// End is the last time at which the task may be due, or 0.
	End Time
}

// Repetition returns when the task repeats. Two tasks with damaged records may have the
// same Repetition.
//
// In a record of version 1 or 2, the fields byte follows the generation. Each of its bits adds
// fields to the record, in this order:
//
//	128  Keeping    [KeepingSize] bytes
//	  1  headers    a number, and twice as many strings
//	  2  attempts   a number
//	  4  timeout    a number
//	  8  period     a number
//	 16  missed     a byte and a number
//	 32  cron       two strings
//	 64  start, end two numbers
//
// Numbers are varints. Strings begin with their length, a varint.
func (t *Task) Repetition() Repetition {
	const fieldsByte = 1 + GenerationSize
	if len(t.Record) <= fieldsByte || !t.hasFields() {
		return Repetition{Pattern: t.Schedule}
	}
	fields, rest := t.Record[fieldsByte], t.Record[fieldsByte+1:]
	skip := func(n uint64) { rest = rest[min(n, uint64(len(rest))):] }
	number := func() uint64 {
		n, size := binary.Uvarint(rest)
		if size <= 0 { // damaged
			n, rest = 0, nil
			return 0
		}
		rest = rest[size:]
		return n
	}
	var pattern strings.Builder
	pattern.WriteString(t.Schedule)
	part := func(read func()) {
		from := rest
		read()
		pattern.WriteByte(0)
		pattern.Write(from[:len(from)-len(rest)])
	}
	var end uint64
	if fields&128 != 0 {
		skip(KeepingSize)
	}
	if fields&1 != 0 {
		for n := number(); n > 0 && len(rest) > 0; n-- {
			skip(number())
			skip(number())
		}
	}
	if fields&2 != 0 {
		number()
	}
	if fields&4 != 0 {
		number()
	}
	if fields&8 != 0 {
		part(func() { number() })
	}
	if fields&16 != 0 {
		skip(1)
		number()
	}
	if fields&32 != 0 {
		part(func() { skip(number()); skip(number()) })
	}
	if fields&64 != 0 {
		part(func() { number() })
		end = number()
	}
	return Repetition{pattern.String(), Time(min(end, uint64(Farthest)))}
}
