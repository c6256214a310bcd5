-- Extend sets a lease's end, shorter or longer, for the delivery that holds it. updated_at stays: it is the last transition.
-- name: Extend :execrows
UPDATE messages SET lease_until = CAST(@until AS INTEGER)
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 1 AND receipt = CAST(@receipt AS TEXT) AND +lease_until > CAST(@now AS INTEGER);

-- Heartbeat renews many leases in one statement. It never shortens one and never revives one that has ended.
-- The list is AckMany's.
-- name: Heartbeat :many
UPDATE messages SET lease_until = max(lease_until, CAST(@until AS INTEGER))
WHERE id IN (SELECT m.id FROM json_each(CAST(@refs AS TEXT)) r CROSS JOIN messages m
    WHERE m.id = CAST(r.value AS INTEGER) AND m.receipt = substr(r.value, instr(r.value, ':') + 1) AND m.status = 1
      AND +m.queue = CAST(@queue AS TEXT) AND +m.lease_until > CAST(@now AS INTEGER))
  AND +status = 1
RETURNING id, CAST(lease_until AS INTEGER) AS lease_until;

-- PromoteDue lets delayed jobs that are due into the claim's index, in order of time, a bounded step at a time:
-- a million at once would hold the lock for seconds.
-- name: PromoteDue :execrows
UPDATE messages SET delayed = 0 WHERE id IN
  (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = -1 AND m.place <= CAST(@now AS INTEGER)
   ORDER BY m.place LIMIT CAST(@n AS INTEGER));

-- MendEndless gives leased rows without an end one that has passed, so that the next two statements free them like any other.
-- name: MendEndless :execrows
UPDATE messages SET lease_until = min(updated_at, CAST(@now AS INTEGER)) WHERE id IN
  (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 1 AND m.place IS NULL LIMIT CAST(@n AS INTEGER));

-- RecordExpired keeps the story of the leases that ReclaimExpired, next in the same transaction, is about to end:
-- the same rows in the same order.
-- name: RecordExpired :execrows
INSERT OR IGNORE INTO deliveries (message_id, delivery, attempt, started_at, ended_at, outcome, error, worker)
SELECT m.id, m.delivery, m.attempts, COALESCE(m.claimed_at, m.updated_at), m.lease_until, 'lease_expired', NULL, m.claimed_by
FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 1 AND m.place <= CAST(@now AS INTEGER)
ORDER BY m.place LIMIT CAST(@n AS INTEGER);

-- ReclaimExpired ends leases whose time has passed: back to ready, or to failed after the last delivery. The attempt was
-- counted at the claim. A bounded step at a time.
-- name: ReclaimExpired :many
UPDATE messages SET status = CASE WHEN attempts >= max_attempts THEN 3 ELSE 0 END,
  reason = CASE WHEN attempts >= max_attempts THEN 'lease_expired' END,
  available_at = CAST(@now AS INTEGER), updated_at = CAST(@now AS INTEGER), delayed = 0, receipt = NULL, lease_until = NULL
WHERE id IN (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 1 AND m.place <= CAST(@now AS INTEGER)
   ORDER BY m.place LIMIT CAST(@n AS INTEGER))
RETURNING id, status;

-- Held tells, without the write lock, which of these deliveries still hold their job; a running Worker asks it to notice
-- a cancelled job early.
-- name: Held :many
SELECT m.id FROM json_each(CAST(@refs AS TEXT)) r CROSS JOIN messages m
WHERE m.id = CAST(r.value AS INTEGER) AND m.receipt = substr(r.value, instr(r.value, ':') + 1) AND m.status = 1 AND +m.queue = CAST(@queue AS TEXT);
