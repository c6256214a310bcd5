-- RetryFailed makes a failed job new: ready now, no attempts, no reason; its delivery number, history and bytes stay.
-- OR IGNORE: a pending-unique key that another live job holds by now leaves this one where it is.
-- name: RetryFailed :execrows
UPDATE OR IGNORE messages SET status = 0, delayed = 0, attempts = 0, reason = NULL, last_error = NULL, available_at = @now, updated_at = @now
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 3;

-- RetryMany retries a list that was read earlier: each row's own state decides, and the count is of what really changed.
-- name: RetryMany :many
UPDATE OR IGNORE messages SET status = 0, delayed = 0, attempts = 0, reason = NULL, last_error = NULL, available_at = CAST(@now AS INTEGER), updated_at = CAST(@now AS INTEGER)
WHERE id IN (SELECT value FROM json_each(CAST(@ids AS TEXT))) AND +queue = CAST(@queue AS TEXT) AND +status = 3
RETURNING id;

-- FailedIDs pages through the dead letters that a filter picks (error: a part of the text, before: last transition
-- earlier than; both always given, '' and a far time when not wanted). It reads n rows of the index and says where it
-- ended, so that a filter that picks few doesn't hold a snapshot for long.
-- name: FailedIDs :many
SELECT p.id, CAST((instr(COALESCE(p.last_error, ''), CAST(@error AS TEXT)) > 0 OR CAST(@error AS TEXT) = '') AND p.updated_at < CAST(@before AS INTEGER) AS INTEGER) AS picked
FROM (SELECT m.id, m.last_error, m.updated_at FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.status = 3 AND m.id > CAST(@after AS INTEGER)
      ORDER BY m.id LIMIT CAST(@n AS INTEGER)) p;

-- Cancel ends a job that has not finished, leased or not.
-- name: Cancel :execrows
UPDATE messages SET status = 3, reason = 'cancelled', delayed = 0, receipt = NULL, lease_until = NULL, updated_at = @now
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status IN (0, 1);

-- RecordCancelled keeps the story of the delivery that Cancel, next in the same transaction, takes away.
-- name: RecordCancelled :execrows
INSERT OR IGNORE INTO deliveries (message_id, delivery, attempt, started_at, ended_at, outcome, error, worker)
SELECT m.id, m.delivery, m.attempts, COALESCE(m.claimed_at, m.updated_at), CAST(@now AS INTEGER), 'cancelled', NULL, m.claimed_by
FROM messages m WHERE m.id = @id AND +m.queue = CAST(@queue AS TEXT) AND m.status = 1;

-- RunNow makes a delayed job due. updated_at moves with available_at, or the hold trigger would hold the row back again.
-- name: RunNow :execrows
UPDATE messages SET delayed = 0, available_at = @now, updated_at = @now
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 0 AND delayed = 1;

-- Delete removes a job that nobody holds.
-- name: Delete :execrows
DELETE FROM messages WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status <> 1;

-- DeleteMany removes from a list that was read earlier what is still in the state it was read in.
-- name: DeleteMany :execrows
DELETE FROM messages WHERE id IN (SELECT value FROM json_each(CAST(@ids AS TEXT)))
  AND +queue = CAST(@queue AS TEXT) AND status = CAST(@status AS INTEGER) AND delayed = CAST(@delayed AS INTEGER) AND status <> 1;
