// Package migrations embeds the goose migrations of the SQLite engine, in the order of their numbers.
// The goose command applies the same files: goose -dir sql/sqlite/migrations sqlite3 FILE up.
package migrations

import "embed"

//go:embed *.sql
var FS embed.FS
