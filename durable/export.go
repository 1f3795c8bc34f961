package durable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tickless/tickless/durable/internal/record"
	"github.com/tickless/tickless/durable/store"
)

// Export writes all tasks of a store to w, in the format that docs/durable.md
// describes, and returns how many. [Import] reads it. First stop the workers and
// clients of the store: see [Copy]. If the error is [ErrChanged], the file is valid,
// but may lack tasks. If it is [ErrSkipped], the file is valid and lacks damaged tasks. The cost
// is that of [Client.List].
func Export(ctx context.Context, w io.Writer, src store.Store) (int, error) {
	c := New(src)
	st, err := c.Stats(ctx)
	if err != nil && !errors.Is(err, store.ErrDamaged) {
		return 0, err
	}
	out, err := record.NewWriter(w, st.PausedHandlers)
	if err != nil {
		return 0, err
	}
	err = forEachEntry(ctx, c, func(_ context.Context, e *store.Entry) error { return out.Add(e) })
	if isComplete(err) {
		err = errors.Join(out.Close(), err)
	}
	return out.Count, err
}

// ErrDamaged is returned by [Import] for a file that differs from what [Export] wrote.
var ErrDamaged = record.ErrDamagedFile

// Import adds the tasks of a file that [Export] wrote to dst. Tasks that dst already
// has do not change. Import pauses dst and leaves it paused: see [Copy].
//
// If the file is damaged or incomplete, the error is an [ErrDamaged] that names the
// line. Tasks before the damage are imported. After an error, Import may be repeated
// with the whole file while dst is still paused. O(n) for n tasks.
func Import(ctx context.Context, dst store.Store, r io.Reader, opts ...ImportOption) (Copied, error) {
	newNames := make(map[string]string)
	for i, o := range opts {
		panicIfNil("Import", i, o)
		o.applyToImport(newNames)
	}
	in, err := record.NewReader(r)
	if err != nil { // before anything is changed
		return Copied{}, err
	}
	paused := make(map[string]store.HandlerPause)
	for handler, p := range in.PausedHandlers {
		paused[cmp.Or(newNames[handler], handler)] = p
	}
	c, err := newImporter(ctx, New(dst), paused)
	if err != nil {
		return Copied{}, err
	}
	for isLast := false; !isLast; {
		var block []*store.Entry
		if block, isLast, err = in.ReadBlock(); err != nil {
			break
		}
		for _, e := range block {
			renameHandlers(newNames, &e.Task, e.NextTask)
			if err := c.addEntry(ctx, e); err != nil {
				return c.copied, err
			}
		}
	}
	return c.copied, errors.Join(c.sendItems(ctx), c.refusal, err)
}

// renameHandlers gives tasks and their follow-ups to handlers with other names. Tasks may be nil.
func renameHandlers(newNames map[string]string, tasks ...*store.Task) {
	for _, t := range tasks {
		if t == nil {
			continue
		}
		t.Handler = cmp.Or(newNames[t.Handler], t.Handler)
		if f, size, ok := t.FollowUps(); ok {
			renameHandlers(newNames, f.Success, f.Failure)
			t.Record = f.Append(t.Record[:size:size])
		}
	}
}

// An ImportOption changes an [Import].
type ImportOption interface {
	applyToImport(newNames map[string]string)
}

type importOption func(newNames map[string]string)

func (f importOption) applyToImport(newNames map[string]string) { f(newNames) }

// RenameHandler gives the tasks of a handler, its follow-ups and its pause to a handler with
// another name. It panics if a name is not valid: see [Task.Handler].
func RenameHandler(from, to string) ImportOption {
	for _, name := range []string{from, to} {
		if !store.IsName(name) {
			panic(fmt.Sprintf("durable: RenameHandler: the name %q must have "+nameRule, name))
		}
	}
	return importOption(func(newNames map[string]string) { newNames[from] = to })
}
