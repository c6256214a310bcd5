-- Jobs that leave the file for an export, and come in by an import. An export walks by id in short snapshots: a reader that
-- stays would keep the WAL from starting anew.

-- ExportPage measures the next jobs without reading their bytes (length reads a blob's header only), so that a page can be
-- cut by size. It takes jobs of every queue and tells which: with one queue chosen here, a page could walk the whole file.
-- name: ExportPage :many
SELECT m.id, m.queue, CAST(length(m.payload) + COALESCE((SELECT length(p.data) FROM payloads p WHERE p.message_id = m.id), 0) AS INTEGER) AS size
FROM messages m WHERE m.id > CAST(@after AS INTEGER) AND m.id <= CAST(@upto AS INTEGER) ORDER BY m.id LIMIT CAST(@n AS INTEGER);

-- ExportJobs reads that page. The empty name, which no queue has, means all.
-- name: ExportJobs :many
SELECT * FROM jobs WHERE id > CAST(@after AS INTEGER) AND id <= CAST(@upto AS INTEGER)
  AND (CAST(@queue AS TEXT) = '' OR +queue = CAST(@queue AS TEXT)) ORDER BY id;

-- ExportHistory is the failed deliveries of that page's jobs, in the order of the table.
-- name: ExportHistory :many
SELECT message_id, delivery, attempt, started_at, ended_at, outcome, error, worker FROM deliveries
WHERE message_id > CAST(@after AS INTEGER) AND message_id <= CAST(@upto AS INTEGER) ORDER BY message_id, delivery;

-- Identity tells this file from all others. One row, by its key.
-- name: Identity :one
SELECT id FROM identity WHERE one = 1;

-- Imported is how far the import of that name has come.
-- name: Imported :one
SELECT lines, digest, keeps_ids, queue FROM imports WHERE name = @name;

-- BeginImport notes an import, in the transaction of its first jobs. Nothing on a conflict: AdvanceImport will notice.
-- name: BeginImport :exec
INSERT INTO imports (name, lines, digest, keeps_ids, started_at, updated_at) VALUES (@name, 0, '', @keeps_ids, @now, @now) ON CONFLICT DO NOTHING;

-- AdvanceImport moves an import on from where the caller believes it to be; the queue, once there, stays. 0 rows: another process has moved it.
-- name: AdvanceImport :execrows
UPDATE imports SET lines = @lines, digest = @digest, queue = COALESCE(queue, sqlc.narg('queue')), updated_at = @now
WHERE name = @name AND lines = CAST(@from_lines AS INTEGER) AND digest = CAST(@from_digest AS TEXT);

-- ReserveIDs keeps the ids that an import brings along from being given to others meanwhile. It never goes back: an id is
-- not given twice. BeginIDs is for a file that has given none yet.
-- name: ReserveIDs :execrows
UPDATE sqlite_sequence SET seq = max(seq, CAST(@last AS INTEGER)) WHERE name = 'messages';

-- name: BeginIDs :exec
INSERT INTO sqlite_sequence (name, seq) VALUES ('messages', @last);

-- ImportSettings leaves a queue that is there already as it is.
-- name: ImportSettings :exec
INSERT INTO queues (name, paused, keep_acked) VALUES (@queue, @paused, @keep_acked) ON CONFLICT (name) DO NOTHING;

-- ImportJob stores a job in whatever state it was; without an id it gets the next one. 0 rows: its key is held, or its id.
-- name: ImportJob :execresult
INSERT INTO messages (id, queue, payload, status, attempts, max_attempts, available_at, lease_until, receipt, last_error, job_id, created_at, updated_at,
                      priority, delayed, delivery, key_scope, claimed_at, claimed_by, reason, headers)
VALUES (sqlc.narg('id'), @queue, @payload, @status, @attempts, @max_attempts, @available_at, @lease_until, @receipt, @last_error, @job_id, @created_at, @updated_at,
        @priority, @delayed, @delivery, @key_scope, @claimed_at, @claimed_by, @reason, @headers)
ON CONFLICT DO NOTHING;

-- ImportDelivery stores an entry of an imported job's history; a trigger keeps the last 20.
-- name: ImportDelivery :exec
INSERT INTO deliveries (message_id, delivery, attempt, started_at, ended_at, outcome, error, worker)
VALUES (@message_id, @delivery, @attempt, @started_at, @ended_at, @outcome, @error, @worker);
