-- Tables that others make: sqlc only reads their shape here; this is no migration.

-- SQLite's, for AUTOINCREMENT.
CREATE TABLE sqlite_sequence (name TEXT NOT NULL, seq INTEGER NOT NULL);

-- SQLite's list of what a file is made of.
CREATE TABLE sqlite_schema (type TEXT NOT NULL, name TEXT NOT NULL);

-- goose's record of the migrations applied.
CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP);
