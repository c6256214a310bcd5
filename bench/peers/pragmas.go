package main

import (
	"context"
	"database/sql"
	"fmt"
)

type rower interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

var levels = map[string]string{"0": "OFF", "1": "NORMAL", "2": "FULL", "3": "EXTRA"}

// readPragmas asks a connection what is in force on it.
func readPragmas(ctx context.Context, conn rower) (inForce, error) {
	var f inForce
	for _, q := range []struct {
		query string
		into  *string
	}{
		{"PRAGMA journal_mode", &f.JournalMode},
		{"PRAGMA synchronous", &f.Synchronous},
		{"PRAGMA page_size", &f.PageSize},
		{"PRAGMA busy_timeout", &f.BusyTimeout},
		{"SELECT sqlite_version()", &f.SQLite},
	} {
		if err := conn.QueryRowContext(ctx, q.query).Scan(q.into); err != nil {
			return f, fmt.Errorf("%s: %w", q.query, err)
		}
	}
	if name, ok := levels[f.Synchronous]; ok {
		f.Synchronous = name
	}
	return f, nil
}

// readPool asks a connection of a pool whose connections are all opened alike.
func readPool(ctx context.Context, db *sql.DB) (inForce, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return inForce{}, err
	}
	f, err := readPragmas(ctx, conn)
	if closed := conn.Close(); err == nil {
		err = closed
	}
	return f, err
}
