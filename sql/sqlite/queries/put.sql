-- Put stores one job. It goes through Exec, not RETURNING: rows affected tells a duplicate (0) and the driver
-- brings the rowid along in the same call. The conflict is the key's unique index, the only one there is.
-- name: Put :execresult
INSERT INTO messages (queue, payload, status, max_attempts, available_at, job_id, created_at, updated_at, priority, delayed, key_scope, headers)
VALUES (@queue, @payload, 0, @max_attempts, @available_at, @job_id, @now, @now, @priority, @delayed, @key_scope, @headers)
ON CONFLICT DO NOTHING;

-- PutPayload keeps the bytes of a large job beside it: every transition rewrites the whole row of messages,
-- so from a few kB on a row of its own is cheaper.
-- name: PutPayload :exec
INSERT INTO payloads (message_id, data) VALUES (@message_id, @data);

-- PutMany stores a whole batch in one statement. All payloads come as one blob, cut by [offset, length] (from 1),
-- so that the bytes arrive exact: JSON text could not carry them. Offsets, lengths and keys come as JSON.
-- RETURNING has no order and skips duplicates: the caller sorts, and maps keyed rows by job_id.
-- name: PutMany :many
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
