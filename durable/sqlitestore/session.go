package sqlitestore

import (
	"context"
	"database/sql"
	"strings"

	"github.com/tickless/tickless/durable/store/batch"
)

// A session runs prepared statements on a connection or in a transaction. Its methods
// panic on errors: see batch.Recover.
type session struct {
	ctx           context.Context // ends only for readers
	prepare       func(ctx context.Context, query string) (*sql.Stmt, error)
	preparedStmts map[statement]*sql.Stmt
}

// A statement is a query. If rowCount is not 0, ROWS in the query stands for that number
// of rows of parameters.
type statement struct {
	query                 string
	rowCount, columnCount int
}

func newSession(db interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}) *session {
	return &session{ctx: context.Background(), prepare: db.PrepareContext, preparedStmts: make(map[statement]*sql.Stmt)}
}

func must(err error) { batch.Must(err) }

func (st statement) String() string {
	repeatList := func(element string, n int) string { return strings.Repeat(element+",", n-1) + element }
	switch {
	case st.rowCount == 0:
		return st.query
	case st.columnCount == 1:
		return strings.Replace(st.query, "ROWS", "("+repeatList("?", st.rowCount)+")", 1)
	}
	return strings.Replace(st.query, "ROWS", repeatList("("+repeatList("?", st.columnCount)+")", st.rowCount), 1)
}

func (x *session) prepareCached(st statement) *sql.Stmt {
	s := x.preparedStmts[st]
	if s == nil {
		var err error
		s, err = x.prepare(x.ctx, st.String())
		must(err)
		x.preparedStmts[st] = s
	}
	return s
}

func (x *session) exec(query string, args ...any) {
	_, err := x.prepareCached(statement{query: query}).ExecContext(x.ctx, args...)
	must(err)
}

// queryRow reads one row, and reports whether there is one.
func (x *session) queryRow(query string, args []any, to ...any) bool {
	err := x.prepareCached(statement{query: query}).QueryRowContext(x.ctx, args...).Scan(to...)
	if err == sql.ErrNoRows {
		return false
	}
	must(err)
	return true
}

// queryRows calls f for each row of the result.
func (x *session) queryRows(query string, args []any, f func(rows *sql.Rows)) {
	x.query(statement{query: query}, args, f)
}

func (x *session) query(st statement, args []any, f func(rows *sql.Rows)) {
	rows, err := x.prepareCached(st).QueryContext(x.ctx, args...)
	must(err)
	defer rows.Close()
	for rows.Next() {
		f(rows)
	}
	must(rows.Err())
}

// queryInBatches runs a query with ROWS, with several rows in each statement. args holds
// the parameters of all rows, row by row. If f is not nil, queryInBatches calls f for each
// row of the result.
func (x *session) queryInBatches(query string, columns int, args []any, f func(rows *sql.Rows)) {
	// The driver's time to bind parameters grows with the square of their number.
	maxRowsPerStatement := 8
	if columns == 1 {
		maxRowsPerStatement = 32
	}
	for len(args) > 0 {
		n := maxRowsPerStatement
		for n > len(args)/columns {
			n = max(n/4, 1)
		}
		st := statement{query, n, columns}
		if f != nil {
			x.query(st, args[:n*columns], f)
		} else {
			_, err := x.prepareCached(st).ExecContext(x.ctx, args[:n*columns]...)
			must(err)
		}
		args = args[n*columns:]
	}
}

// close closes the statements.
func (x *session) close() {
	for _, s := range x.preparedStmts {
		_ = s.Close()
	}
}
