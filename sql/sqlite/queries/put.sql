-- Put stores one job. It goes through Exec, not RETURNING: rows affected tells a duplicate (0) and the driver
-- brings the rowid along in the same call. The conflict is the key's unique index, the only one there is.
-- OR FAIL, here and in the other statements of one row: nothing can fail once the row is written, so there is nothing to
-- undo, and SQLite need not copy the pages before it changes them (a sixth of a put's work).
-- name: Put :execresult
INSERT OR FAIL INTO messages (queue, payload, status, max_attempts, available_at, job_id, created_at, updated_at, priority, delayed, key_scope, headers)
VALUES (@queue, @payload, 0, @max_attempts, @available_at, @job_id, @now, @now, @priority, @delayed, @key_scope, @headers)
ON CONFLICT DO NOTHING;

-- PutPayload keeps the bytes of a large job beside it: every transition rewrites the whole row of messages,
-- so from a few kB on a row of its own is cheaper.
-- name: PutPayload :exec
INSERT INTO payloads (message_id, data) VALUES (@message_id, @data);

-- PutMany stores a batch without keys in one statement. All payloads come as one blob, so that the bytes arrive exact:
-- JSON text could not carry them. Each span that cuts it is one number, offset << 25 | length, which costs less to read
-- than a pair. No RETURNING: the ids of one statement follow each other (under the write lock nobody else takes one, and
-- what triggers insert has no rowid), so the last one and the number of rows tell them all.
-- name: PutMany :execresult
INSERT INTO messages (queue, payload, status, max_attempts, available_at, created_at, updated_at)
SELECT CAST(@queue AS TEXT), substr(CAST(@payloads AS BLOB), (value >> 25) + 1, value & 33554431), 0, CAST(@max_attempts AS INTEGER),
       CAST(@now AS INTEGER), CAST(@now AS INTEGER), CAST(@now AS INTEGER)
FROM json_each(CAST(@spans AS TEXT));

-- PutManyKeyed stores a batch with keys: [offset, length, key] each, the offset from 1. RETURNING has no order and skips
-- duplicates: the caller sorts, and maps keyed rows by job_id.
-- name: PutManyKeyed :many
INSERT INTO messages (queue, payload, status, max_attempts, available_at, job_id, created_at, updated_at)
SELECT CAST(@queue AS TEXT), substr(CAST(@payloads AS BLOB), json_extract(value, '$[0]'), json_extract(value, '$[1]')), 0, CAST(@max_attempts AS INTEGER),
       CAST(@now AS INTEGER), json_extract(value, '$[2]'), CAST(@now AS INTEGER), CAST(@now AS INTEGER)
FROM json_each(CAST(@spans AS TEXT)) WHERE true
ON CONFLICT DO NOTHING RETURNING id, job_id;

-- FindKey names the job that holds a key; the predicate is the unique index's own.
-- name: FindKey :one
SELECT id FROM messages WHERE queue = @queue AND job_id = CAST(@job_id AS TEXT) AND (key_scope = 0 OR status < 2);

-- Pending reads what WithMaxPending limits: one seek, whatever the backlog.
-- name: Pending :one
SELECT CAST(COALESCE(max(q.ready + q.leased), 0) AS INTEGER) FROM queues q WHERE q.name = @queue;
