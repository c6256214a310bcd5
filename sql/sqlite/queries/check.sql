-- What Check looks for beyond SQLite's own checks: the invariants of the state machine. Each list is bounded.

-- CountStates counts what the counters claim to know. +queue: in the order of the index every row would be a seek.
-- name: CountStates :many
SELECT queue, CAST(sum(status = 0) AS INTEGER) AS ready, CAST(sum(status = 0 AND delayed) AS INTEGER) AS delayed, CAST(sum(status = 1) AS INTEGER) AS leased,
  CAST(sum(status = 2) AS INTEGER) AS acked, CAST(sum(status = 3) AS INTEGER) AS failed
FROM messages GROUP BY +queue;

-- Counters is what they say. Nothing in the file forbids a NULL in them; -1 differs from every count.
-- name: Counters :many
SELECT name, CAST(COALESCE(ready, -1) AS INTEGER) AS ready, CAST(COALESCE(delayed, -1) AS INTEGER) AS delayed, CAST(COALESCE(leased, -1) AS INTEGER) AS leased,
  CAST(COALESCE(acked, -1) AS INTEGER) AS acked, CAST(COALESCE(failed, -1) AS INTEGER) AS failed FROM queues;

-- ImpossibleJobs are rows that no transition leaves behind.
-- name: ImpossibleJobs :many
SELECT id, queue, CAST(CASE
    WHEN status NOT IN (0, 1, 2, 3) THEN 'has the unknown status ' || status
    WHEN status = 1 AND receipt IS NULL THEN 'is leased without a receipt'
    WHEN status = 1 AND lease_until IS NULL THEN 'is leased without an end'
    WHEN status <> 1 AND receipt IS NOT NULL THEN 'has a receipt but is not leased'
    WHEN status = 1 AND attempts > max_attempts THEN 'has ' || attempts || ' attempts of at most ' || max_attempts
    WHEN status = 0 AND attempts >= max_attempts THEN 'is ready after ' || attempts || ' attempts of at most ' || max_attempts
    WHEN attempts < 0 THEN 'has ' || attempts || ' attempts'
    WHEN status <> 0 AND delayed <> 0 THEN 'is delayed but not ready'
    ELSE 'has fewer deliveries (' || delivery || ') than attempts (' || attempts || ')' END AS TEXT) AS finding
FROM messages
WHERE status NOT IN (0, 1, 2, 3) OR (status = 1 AND (receipt IS NULL OR lease_until IS NULL OR attempts > max_attempts))
   OR (status <> 1 AND receipt IS NOT NULL) OR (status = 0 AND attempts >= max_attempts) OR delivery < attempts
   OR attempts < 0 OR (status <> 0 AND delayed <> 0)
ORDER BY id LIMIT CAST(@n AS INTEGER);

-- Orphans are side rows whose job is gone.
-- name: Orphans :many
SELECT p.message_id, CAST('payload' AS TEXT) AS kind FROM payloads p WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = p.message_id)
UNION ALL
SELECT d.message_id, CAST('delivery' AS TEXT) AS kind FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = d.message_id)
LIMIT CAST(@n AS INTEGER);

-- DoublePayloads are jobs whose bytes stand both in their row and beside it. CROSS JOIN: only the side rows are walked.
-- name: DoublePayloads :many
SELECT m.id, m.queue FROM payloads p CROSS JOIN messages m WHERE m.id = p.message_id AND length(m.payload) > 0 LIMIT CAST(@n AS INTEGER);

-- LateHistory are entries of deliveries that the job hasn't had. A job claimed by the original may have an entry 0.
-- name: LateHistory :many
SELECT m.id, m.queue, d.delivery, m.delivery AS latest FROM deliveries d CROSS JOIN messages m
WHERE m.id = d.message_id AND (d.delivery > m.delivery OR d.delivery < 0) LIMIT CAST(@n AS INTEGER);

-- LongHistory are histories that nobody has trimmed to the last 20 entries. In the order of the key: nothing is sorted.
-- name: LongHistory :many
SELECT message_id, CAST(sum(delivery > 0) AS INTEGER) AS entries FROM deliveries GROUP BY message_id HAVING sum(delivery > 0) > 20 LIMIT CAST(@n AS INTEGER);

-- DoubleKeys are keys with more than one holder. The condition is the unique index's own, so that it is walked in its order.
-- name: DoubleKeys :many
SELECT queue, CAST(job_id AS TEXT) AS job_id, CAST(min(id) AS INTEGER) AS first_id, count(*) AS holders
FROM messages WHERE job_id IS NOT NULL AND (key_scope = 0 OR status < 2)
GROUP BY queue, job_id HAVING count(*) > 1 LIMIT CAST(@n AS INTEGER);

-- HighestID is the highest id in use; LastID must not be lower, or an id would be given twice.
-- name: HighestID :one
SELECT CAST(COALESCE(max(id), 0) AS INTEGER) FROM messages;

-- SchemaObjects are what the file is made of; what the migrations made must all be there.
-- name: SchemaObjects :many
SELECT type, name FROM sqlite_schema;
