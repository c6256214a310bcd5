-- What Check looks for beyond SQLite's own checks: the invariants of the state machine. Each list is bounded.

-- CountStates counts what the counters claim to know. +queue: in the order of the index every row would be a seek.
-- name: CountStates :many
SELECT queue, CAST(sum(status = 0) AS INTEGER) AS ready, CAST(sum(status = 0 AND delayed) AS INTEGER) AS delayed, CAST(sum(status = 1) AS INTEGER) AS leased,
  CAST(sum(status = 2) AS INTEGER) AS acked, CAST(sum(status = 3) AS INTEGER) AS failed
FROM messages GROUP BY +queue;

-- Counters is what they say.
-- name: Counters :many
SELECT name, CAST(ready AS INTEGER) AS ready, CAST(delayed AS INTEGER) AS delayed, CAST(leased AS INTEGER) AS leased,
  CAST(acked AS INTEGER) AS acked, CAST(failed AS INTEGER) AS failed FROM queues;

-- ImpossibleJobs are rows that no transition leaves behind.
-- name: ImpossibleJobs :many
SELECT id, queue, CAST(CASE
    WHEN status NOT IN (0, 1, 2, 3) THEN 'has the unknown status ' || status
    WHEN status = 1 AND receipt IS NULL THEN 'is leased without a receipt'
    WHEN status = 1 AND lease_until IS NULL THEN 'is leased without an end'
    WHEN status <> 1 AND receipt IS NOT NULL THEN 'has a receipt but is not leased'
    WHEN status = 1 AND attempts > max_attempts THEN 'has ' || attempts || ' attempts of at most ' || max_attempts
    WHEN status = 0 AND attempts >= max_attempts THEN 'is ready after ' || attempts || ' attempts of at most ' || max_attempts
    ELSE 'has fewer deliveries (' || delivery || ') than attempts (' || attempts || ')' END AS TEXT) AS finding
FROM messages
WHERE status NOT IN (0, 1, 2, 3) OR (status = 1 AND (receipt IS NULL OR lease_until IS NULL OR attempts > max_attempts))
   OR (status <> 1 AND receipt IS NOT NULL) OR (status = 0 AND attempts >= max_attempts) OR delivery < attempts
ORDER BY id LIMIT CAST(@n AS INTEGER);

-- Orphans are side rows whose job is gone.
-- name: Orphans :many
SELECT p.message_id, CAST('payload' AS TEXT) AS kind FROM payloads p WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = p.message_id)
UNION ALL
SELECT d.message_id, CAST('delivery' AS TEXT) AS kind FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = d.message_id)
LIMIT CAST(@n AS INTEGER);
