package sqlitestore

import (
	"context"
	"database/sql"
	"strings"
)

// A session is a connection, or a transaction of the application, with the statements
// that it has prepared. Its methods panic with a failure: see recoverInto.
type session struct {
	ctx     context.Context // of readers; others have one that does not end
	prepare func(ctx context.Context, query string) (*sql.Stmt, error)
	stmts   map[string]*sql.Stmt
	lists   map[[2]int]string // of parameters, by columns and rows
}

func newSession(on interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}) *session {
	return &session{ctx: context.Background(), prepare: on.PrepareContext, stmts: make(map[string]*sql.Stmt), lists: make(map[[2]int]string)}
}

type failure struct{ err error }

func must(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// recoverInto makes an error of a failure.
func recoverInto(err *error) {
	switch v := recover().(type) {
	case nil:
	case failure:
		*err = v.err
	default:
		panic(v)
	}
}

func (x *session) stmt(query string) *sql.Stmt {
	s := x.stmts[query]
	if s == nil {
		var err error
		s, err = x.prepare(x.ctx, query)
		must(err)
		x.stmts[query] = s
	}
	return s
}

func (x *session) exec(query string, args ...any) {
	_, err := x.stmt(query).ExecContext(x.ctx, args...)
	must(err)
}

// row reads one row, and reports whether there is one.
func (x *session) row(query string, args []any, to ...any) bool {
	err := x.stmt(query).QueryRowContext(x.ctx, args...).Scan(to...)
	if err == sql.ErrNoRows {
		return false
	}
	must(err)
	return true
}

// rows calls f for each row.
func (x *session) rows(query string, args []any, f func(rows *sql.Rows)) {
	rows, err := x.stmt(query).QueryContext(x.ctx, args...)
	must(err)
	defer rows.Close()
	for rows.Next() {
		f(rows)
	}
	must(rows.Err())
}

// some carries out a statement that ends in a list of rows, each of so many columns, for
// several rows at a time: that takes half the time of one for each. It calls f, if there is
// one, for each row of an answer.
func (x *session) some(query string, columns int, args []any, f func(rows *sql.Rows)) {
	// The driver's time to bind parameters grows with the square of their number.
	most := 8
	if columns == 1 {
		most = 32
	}
	for len(args) > 0 {
		n := most
		for n > len(args)/columns {
			n /= 4
		}
		n = max(n, 1)
		list := x.params(columns, n)
		if f == nil {
			x.exec(query+list, args[:n*columns]...)
		} else {
			x.rows(query+list, args[:n*columns], f)
		}
		args = args[n*columns:]
	}
}

// params returns a list of parameters, for n rows.
func (x *session) params(columns, n int) string {
	text, ok := x.lists[[2]int{columns, n}]
	if !ok {
		row := "(?" + strings.Repeat(",?", columns-1) + ")"
		text = row + strings.Repeat(","+row, n-1)
		if columns == 1 {
			text = "(?" + strings.Repeat(",?", n-1) + ")"
		}
		x.lists[[2]int{columns, n}] = text
	}
	return text
}

// close closes the statements.
func (x *session) close() {
	for _, s := range x.stmts {
		_ = s.Close()
	}
}
