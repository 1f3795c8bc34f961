package httptimeout_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/tickless/tickless/deadline"
)

// A query with a deadline. Package sql waits for the context during the query, which
// starts a timer.
func Example_databaseSQL() {
	db := sql.OpenDB(slowDatabase{})
	defer db.Close()

	ctx, cancel := deadline.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err := db.ExecContext(ctx, "VACUUM")
	fmt.Println(err)
	// Output: context deadline exceeded
}

// slowDatabase is a driver whose statements block until their context ends.
type slowDatabase struct{}

func (d slowDatabase) Connect(context.Context) (driver.Conn, error) { return d, nil }
func (d slowDatabase) Driver() driver.Driver                        { return nil }
func (d slowDatabase) Prepare(string) (driver.Stmt, error)          { return nil, driver.ErrBadConn }
func (d slowDatabase) Begin() (driver.Tx, error)                    { return nil, driver.ErrBadConn }
func (d slowDatabase) Close() error                                 { return nil }

func (d slowDatabase) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
