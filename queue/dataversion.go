package queue

import (
	"context"
	"database/sql"
)

// dataVersion watches PRAGMA data_version on a connection of its own: it moves with every commit of any other
// connection, in this process or another (sqlite.org/pragma.html#pragma_data_version).
type dataVersion struct {
	s    *Store
	conn *sql.Conn
	stmt *sql.Stmt
	last int64
}

// forget makes the next look count as moved.
func (d *dataVersion) forget() { d.last = 0 }

// moved tells whether anything was committed since the last call.
func (d *dataVersion) moved(ctx context.Context) (bool, error) {
	if d.conn == nil {
		conn, err := d.s.reader.Conn(ctx)
		if err != nil {
			return false, err
		}
		stmt, err := conn.PrepareContext(ctx, "PRAGMA data_version")
		if err != nil {
			_ = conn.Close()
			return false, err
		}
		d.conn, d.stmt = conn, stmt
	}
	var v int64
	// Without a cancellable context: the driver would start a goroutine for each call.
	if err := d.stmt.QueryRowContext(context.Background()).Scan(&v); err != nil {
		d.close()
		return false, err
	}
	moved := v != d.last
	d.last = v
	return moved, nil
}

func (d *dataVersion) close() {
	if d.conn != nil {
		_ = d.stmt.Close()
		_ = d.conn.Close()
		d.conn, d.stmt = nil, nil
	}
}
