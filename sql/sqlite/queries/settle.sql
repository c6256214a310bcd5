-- Every statement here changes the row only in the state it leaves, for the delivery that holds it: id, queue, receipt,
-- and a lease that has not ended. 0 rows is never success. +queue and +lease_until keep the planner on the rowid:
-- without them a batch walks all leased rows.

-- Ack finishes a job. The receipt and the lease's end are cleared, the row stays for de-duplication and counts
-- (unless the queue keeps nothing: a trigger then deletes it).
-- name: Ack :execrows
UPDATE OR FAIL messages SET status = 2, receipt = NULL, lease_until = NULL, updated_at = @now
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 1 AND receipt = CAST(@receipt AS TEXT) AND +lease_until > CAST(@now AS INTEGER);

-- AckMany takes each job as "id:receipt", so that a receipt counts for its own id only; the cast reads the id, up to the
-- colon. Every delivery is looked up and compared in the sub-select, which costs less than a list of receipts to search.
-- CROSS JOIN keeps the order: from the list to the rows. Outside, +status, as in every batch by ids: with ANALYZE's
-- figures the planner would walk the rows of that state instead.
-- name: AckMany :many
UPDATE messages SET status = 2, receipt = NULL, lease_until = NULL, updated_at = CAST(@now AS INTEGER)
WHERE id IN (SELECT m.id FROM json_each(CAST(@refs AS TEXT)) r CROSS JOIN messages m
    WHERE m.id = CAST(r.value AS INTEGER) AND m.receipt = substr(r.value, instr(r.value, ':') + 1) AND m.status = 1
      AND +m.queue = CAST(@queue AS TEXT) AND +m.lease_until > CAST(@now AS INTEGER))
  AND +status = 1
RETURNING id;

-- RecordDelivery keeps the story of a delivery that is about to fail; it runs before the statement that ends it, on the
-- same condition. OR IGNORE: a delivery number has one entry, also where the original's claims left no number.
-- name: RecordDelivery :execrows
INSERT OR IGNORE INTO deliveries (message_id, delivery, attempt, started_at, ended_at, outcome, error, worker)
SELECT m.id, m.delivery, m.attempts, COALESCE(m.claimed_at, m.updated_at), CAST(@now AS INTEGER), CAST(@outcome AS TEXT), sqlc.narg('error'), m.claimed_by
FROM messages m
WHERE m.id = @id AND +m.queue = CAST(@queue AS TEXT) AND m.status = 1 AND m.receipt = CAST(@receipt AS TEXT) AND +m.lease_until > CAST(@now AS INTEGER);

-- Nack returns a job, after a delay if there is one, or fails it on the last delivery. A missing error keeps the earlier one.
-- name: Nack :one
UPDATE messages SET status = CASE WHEN attempts >= max_attempts THEN 3 ELSE 0 END,
  reason = CASE WHEN attempts >= max_attempts THEN CAST(@reason AS TEXT) END,
  delayed = attempts < max_attempts AND CAST(@delay AS INTEGER) > 0,
  available_at = CAST(@now AS INTEGER) + CASE WHEN attempts < max_attempts THEN CAST(@delay AS INTEGER) ELSE 0 END,
  last_error = COALESCE(sqlc.narg('error'), last_error), receipt = NULL, lease_until = NULL, updated_at = CAST(@now AS INTEGER)
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 1 AND receipt = CAST(@receipt AS TEXT) AND +lease_until > CAST(@now AS INTEGER)
RETURNING status;

-- Fail moves a job to the dead letters whatever deliveries it has left.
-- name: Fail :execrows
UPDATE messages SET status = 3, reason = CAST(@reason AS TEXT), last_error = COALESCE(sqlc.narg('error'), last_error),
  receipt = NULL, lease_until = NULL, updated_at = CAST(@now AS INTEGER)
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 1 AND receipt = CAST(@receipt AS TEXT) AND +lease_until > CAST(@now AS INTEGER);

-- Release hands a job back as if it had not been delivered: the attempt is not used, the delivery number stays used.
-- name: Release :execrows
UPDATE messages SET status = 0, attempts = attempts - 1, delayed = CAST(@delay AS INTEGER) > 0, available_at = CAST(@now AS INTEGER) + CAST(@delay AS INTEGER),
  receipt = NULL, lease_until = NULL, updated_at = CAST(@now AS INTEGER)
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 1 AND receipt = CAST(@receipt AS TEXT) AND +lease_until > CAST(@now AS INTEGER);

-- WhyLost reads what tells the cause of a lost lease, once a settle has changed nothing. The sequence tells an id that
-- was given and is gone from one that never was.
-- name: WhyLost :one
SELECT m.status, m.queue, m.delivery, m.receipt, m.lease_until, m.reason, d.outcome
FROM messages m LEFT JOIN deliveries d ON d.message_id = m.id AND d.delivery = CAST(@delivery AS INTEGER) WHERE m.id = CAST(@id AS INTEGER);

-- LastID is the highest id ever given.
-- name: LastID :one
SELECT CAST(COALESCE(max(seq), 0) AS INTEGER) FROM sqlite_sequence WHERE name = 'messages';
