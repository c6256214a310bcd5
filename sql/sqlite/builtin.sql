-- SQLite makes this table itself, for AUTOINCREMENT. sqlc only reads its shape here; it is no migration.
CREATE TABLE sqlite_sequence (name TEXT NOT NULL, seq INTEGER NOT NULL);
