package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"github.com/tickless/tickless/durable/store"
)

// Export writes lines of JSON: a header, a line for each task, and checksums. A
// checksum covers all bytes before its line. The last line is a checksum that marks the
// end.

const (
	fileFormat  = "tickless tasks"
	fileVersion = 1
)

type fileHeader struct {
	Format  string   `json:"format"`
	Version int      `json:"version"`
	Time    fileTime `json:"time"` // when the export started; not read by Import
}

type fileChecksum struct {
	Tasks *int   `json:"tasks"` // tasks so far
	CRC   string `json:"crc32c"`
	End   bool   `json:"end,omitempty"`
}

type fileTask struct {
	ID       byteString `json:"id"`
	Handler  byteString `json:"handler"`
	Schedule byteString `json:"schedule,omitempty"`
	Record   []byte     `json:"record,omitempty"`
}

// A fileEntry is a line with a task.
type fileEntry struct {
	fileTask
	State     store.State   `json:"state"`
	At        fileTime      `json:"at"`
	Due       fileTime      `json:"due"`
	Attempts  int           `json:"attempts,omitempty"`
	Crashes   int           `json:"crashes,omitempty"`
	Runs      int           `json:"runs,omitempty"`
	Following bool          `json:"following,omitempty"`
	Next      fileTime      `json:"next,omitzero"`
	NextTask  *fileTask     `json:"next_task,omitempty"`
	Failures  []fileFailure `json:"failures,omitempty"`
}

type fileFailure struct {
	Attempt int        `json:"attempt"`
	Time    fileTime   `json:"time"`
	Text    byteString `json:"text"`
}

// A fileTime is a time, encoded as in RFC 3339 with microseconds.
type fileTime store.Time

func (m fileTime) MarshalText() ([]byte, error) {
	return store.Time(m).Std().UTC().AppendFormat(nil, time.RFC3339Nano), nil
}

func (m *fileTime) UnmarshalText(b []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return err
	}
	*m = fileTime(t.UnixMicro())
	if t.Nanosecond()%1000 != 0 {
		return fmt.Errorf("the time %s is more precise than a microsecond", b)
	}
	return nil
}

// A byteString is a string that need not be UTF-8. If it is not, its JSON is an object
// with base64.
type byteString string

type base64String struct {
	Base64 []byte `json:"base64"`
}

func (s byteString) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(s)) {
		return marshalLine(string(s)) // json.Marshal would escape <, > and &
	}
	return json.Marshal(base64String{[]byte(s)})
}

func (s *byteString) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var x base64String
		err := unmarshalStrict(b, &x)
		*s = byteString(x.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(s))
}

func fileTaskOf(t *store.Task) fileTask {
	return fileTask{byteString(t.ID), byteString(t.Handler), byteString(t.Schedule), t.Record}
}

func (t *fileTask) storeTask() store.Task {
	return store.Task{ID: string(t.ID), Handler: string(t.Handler), Schedule: string(t.Schedule), Record: t.Record}
}

func fileEntryOf(e *store.Entry) fileEntry {
	x := fileEntry{fileTask: fileTaskOf(&e.Task), State: e.State, At: fileTime(e.At), Due: fileTime(e.Due),
		Attempts: e.Attempts, Crashes: e.Crashes, Runs: e.Runs}
	if e.Following {
		x.Following, x.Next = true, fileTime(e.Next)
	}
	if e.NextTask != nil {
		nextTask := fileTaskOf(e.NextTask)
		x.NextTask = &nextTask
	}
	for _, f := range e.Failures {
		x.Failures = append(x.Failures, fileFailure{f.Attempt, fileTime(f.Time), byteString(f.Text)})
	}
	return x
}

func (x *fileEntry) storeEntry() (*store.Entry, error) {
	e := &store.Entry{Task: x.storeTask(), State: x.State, At: store.Time(x.At), Due: store.Time(x.Due), Attempts: x.Attempts,
		Crashes: x.Crashes, Runs: x.Runs, Following: x.Following, Next: store.Time(x.Next)}
	if x.NextTask != nil {
		nextTask := x.NextTask.storeTask()
		e.NextTask = &nextTask
	}
	for _, f := range x.Failures {
		e.Failures = append(e.Failures, store.Failure{Attempt: f.Attempt, Time: store.Time(f.Time), Text: string(f.Text)})
	}
	importCommand := store.Command{Op: store.Import, Items: []store.Item{{ID: e.ID, Entry: e}}}
	return e, importCommand.Check(&store.Stamp{Sender: "import", Number: 1})
}

func marshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	x := json.NewEncoder(&b)
	x.SetEscapeHTML(false)
	err := x.Encode(v) // with a newline
	return b.Bytes(), err
}

// unmarshalStrict decodes all of b. Unknown fields and trailing data are errors.
func unmarshalStrict(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("unexpected data after the object")
	}
	return nil
}

func unmarshalHeader(b []byte) (h fileHeader, err error) {
	// Allow unknown fields: a later version may have them.
	if err := json.Unmarshal(b, &h); err != nil {
		return h, err
	}
	if h.Format != fileFormat {
		return h, fmt.Errorf("unknown format %q", h.Format)
	}
	return h, nil
}

// unmarshalLine decodes a task or a checksum.
func unmarshalLine(b []byte) (*store.Entry, *fileChecksum, error) {
	var x struct {
		fileEntry
		fileChecksum
	}
	if err := unmarshalStrict(b, &x); err != nil {
		return nil, nil, err
	}
	if x.Tasks == nil {
		e, err := x.storeEntry()
		return e, nil, err
	}
	return nil, &x.fileChecksum, nil
}
