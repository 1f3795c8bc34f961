package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/tickless/tickless/durable/store"
)

// The lines of a file: see file.go.

type fileHeader struct {
	Format  string   `json:"format"`
	Version int      `json:"version"`
	Time    fileTime `json:"time"` // when the file was begun; not read again
	// PausedHandlers were paused then. Older versions do not write or read them.
	PausedHandlers map[string]filePause `json:"paused_handlers,omitempty"`
}

type filePause struct {
	Since fileTime `json:"since"`
	Note  string   `json:"note,omitempty"`
}

type fileChecksum struct {
	Tasks *int   `json:"tasks"` // tasks so far
	CRC   string `json:"crc32c"`
	End   bool   `json:"end,omitempty"`
}

type fileTask struct {
	ID       fileString `json:"id"`
	Handler  fileString `json:"handler"`
	Schedule fileString `json:"schedule,omitempty"`
	Record   []byte     `json:"record,omitempty"`
	Group    fileString `json:"group,omitempty"`
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
	Paused    bool          `json:"paused,omitempty"`
	Once      bool          `json:"once,omitempty"`
	Next      fileTime      `json:"next,omitzero"`
	NextTask  *fileTask     `json:"next_task,omitempty"`
	Failures  []fileFailure `json:"failures,omitempty"`
}

type fileFailure struct {
	Attempt int        `json:"attempt"`
	Time    fileTime   `json:"time"`
	Text    fileString `json:"text"`

	HandBacks int `json:"hand_backs,omitempty"`
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

// A fileString is a name or a text. Older versions allowed other bytes than UTF-8, in an
// object with base64.
type fileString string

func (s *fileString) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var x struct {
			Base64 []byte `json:"base64"`
		}
		err := unmarshalStrict(b, &x)
		*s = fileString(x.Base64)
		return err
	}
	return json.Unmarshal(b, (*string)(s))
}

func fileTaskOf(t *store.Task) fileTask {
	key := store.KeyOf(t.ID)
	return fileTask{fileString(escapedName(key) + t.ID[len(key):]), fileString(escapedName(t.Handler)), fileString(escapedName(t.Schedule)), t.Record, fileString(t.Group)}
}

// escapedName returns a name, with the escapes of Go if it is not text. Older versions
// allowed such names, and Import does not.
func escapedName(s string) string {
	if s == "" || store.IsName(s) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}

func (t *fileTask) storeTask() store.Task {
	return store.Task{ID: string(t.ID), Handler: string(t.Handler), Schedule: string(t.Schedule), Group: string(t.Group), Record: t.Record}
}

// fileEntryOf returns the line of an entry. It does not say that a task was cancelled while it
// ran: if the task was scheduled again after that, only its next run is in the file.
func fileEntryOf(e *store.Entry) fileEntry {
	if e.Stopping {
		next := e.WithoutAttempt(e.At)
		e = &next
	}
	x := fileEntry{fileTask: fileTaskOf(&e.Task), State: e.State, At: fileTime(e.At), Due: fileTime(e.Due),
		Attempts: e.Attempts, Crashes: e.Crashes, Runs: e.Runs, Paused: e.Paused, Once: e.Once}
	if e.Following {
		x.Following, x.Next = true, fileTime(e.Next)
	}
	if e.NextTask != nil {
		nextTask := fileTaskOf(e.NextTask)
		x.NextTask = &nextTask
	}
	for _, f := range e.Failures {
		x.Failures = append(x.Failures, fileFailure{f.Attempt, fileTime(f.Time), fileString(f.Text), f.HandBacks})
	}
	return x
}

func (x *fileEntry) storeEntry() *store.Entry {
	e := &store.Entry{Task: x.storeTask(), State: x.State, At: store.Time(x.At), Due: store.Time(x.Due), Attempts: x.Attempts,
		Crashes: x.Crashes, Runs: x.Runs, Following: x.Following, Paused: x.Paused, Once: x.Once, Next: store.Time(x.Next)}
	if x.NextTask != nil {
		nextTask := x.NextTask.storeTask()
		e.NextTask = &nextTask
	}
	for _, f := range x.Failures {
		e.Failures = append(e.Failures, store.Failure{Attempt: f.Attempt, Time: store.Time(f.Time), Text: string(f.Text), HandBacks: f.HandBacks})
	}
	return e
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
		return x.storeEntry(), nil, nil
	}
	return nil, &x.fileChecksum, nil
}
