-- +goose Up
-- The jobs, one row each. IF NOT EXISTS and these columns, because the Python original (1.0 to 1.4) makes the
-- same table under the same name: its files are adopted as they stand.
CREATE TABLE IF NOT EXISTS messages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT, -- an id is never given twice, also after a purge
    queue        TEXT    NOT NULL,
    payload      BLOB    NOT NULL,                  -- empty when the bytes are in payloads
    status       INTEGER NOT NULL,                  -- 0 ready, 1 leased, 2 acked, 3 failed
    attempts     INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    available_at INTEGER NOT NULL,                  -- every time: Unix milliseconds, UTC
    lease_until  INTEGER,
    receipt      TEXT,
    last_error   TEXT,
    job_id       TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL                   -- the last transition; a heartbeat does not touch it
);

-- +goose Down
SELECT 1; -- the jobs stay
