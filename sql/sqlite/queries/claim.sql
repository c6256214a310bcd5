-- Next finds the job to claim: one seek for the highest priority, then the lowest id, among claimable rows only.
-- It finds nothing while the queue is paused, and nothing while a delayed job is due or a lease has ended, because
-- those may come first: the engine then promotes and reclaims in the same transaction, and claims with ClaimMany.
-- The job is sought in a sub-select: beside a scan of the ready rows SQLite would ask the conditions that refuse once for
-- each of them. The counters spare the seeks for those to a queue that has no such rows. A lease without an end (NULL sorts first)
-- counts as ended. max(delivery, attempts): a row claimed by the original has attempts but no delivery number.
-- name: Next :one
SELECT m.id, m.attempts, m.max_attempts, CAST(max(m.delivery, m.attempts) + 1 AS INTEGER) AS delivery, m.priority, m.job_id, m.headers, m.last_error, m.created_at,
  CAST(iif(length(m.payload) > 0, m.payload, COALESCE((SELECT p.data FROM payloads p WHERE p.message_id = m.id), m.payload)) AS BLOB) AS payload
FROM messages m WHERE m.id = (SELECT r.id FROM messages r WHERE r.queue = CAST(@queue AS TEXT) AND r.stage = 0 ORDER BY r.place, r.id LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.name = CAST(@queue AS TEXT) AND (q.paused <> 0
    OR (q.delayed <> 0 AND COALESCE((SELECT d.place <= CAST(@now AS INTEGER) FROM messages d
                                     WHERE d.queue = CAST(@queue AS TEXT) AND d.stage = -1 ORDER BY d.place LIMIT 1), 0))
    OR (q.leased <> 0 AND COALESCE((SELECT COALESCE(l.place, 0) <= CAST(@now AS INTEGER) FROM messages l
                                    WHERE l.queue = CAST(@queue AS TEXT) AND l.stage = 1 ORDER BY l.place LIMIT 1), 0))));

-- Claim takes the job that Next has found in the same transaction. Two statements cost less than one with RETURNING,
-- for which SQLite makes a table and drops it again at every call.
-- name: Claim :execrows
UPDATE OR FAIL messages SET status = 1, attempts = attempts + 1, delivery = CAST(@delivery AS INTEGER), receipt = CAST(@receipt AS TEXT),
  lease_until = CAST(@lease_until AS INTEGER), updated_at = CAST(@now AS INTEGER), claimed_at = CAST(@now AS INTEGER), claimed_by = CAST(@worker AS TEXT)
WHERE id = @id AND +queue = CAST(@queue AS TEXT) AND status = 0 AND delayed = 0;

-- ClaimMany takes up to n jobs, after the engine has promoted and reclaimed. The CAST of every parameter inside the
-- ordered sub-select and the LIMIT matters: without it the statement is planned anew at every call.
-- name: ClaimMany :many
UPDATE messages SET status = 1, attempts = attempts + 1, delivery = max(delivery, attempts) + 1,
  receipt = (max(delivery, attempts) + 1) || '-' || lower(hex(randomblob(16))),
  lease_until = CAST(@now AS INTEGER) + CAST(@lease AS INTEGER), updated_at = CAST(@now AS INTEGER), claimed_at = CAST(@now AS INTEGER), claimed_by = CAST(@worker AS TEXT)
WHERE id IN (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 0 ORDER BY m.place, m.id LIMIT CAST(@n AS INTEGER))
  AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.name = CAST(@queue AS TEXT) AND q.paused <> 0)
RETURNING id, CAST(receipt AS TEXT) AS receipt, attempts, max_attempts, delivery, priority, job_id, headers, last_error, created_at, CAST(lease_until AS INTEGER) AS lease_until,
  CAST(iif(length(payload) > 0, payload, COALESCE((SELECT p.data FROM payloads p WHERE p.message_id = messages.id), payload)) AS BLOB);

-- Outlook answers what a receiver must know without the write lock: is anything claimable, what falls due or ends
-- next (0: nothing), is the queue paused. Three seeks; an idle poll costs no more.
-- name: Outlook :one
SELECT CAST(EXISTS (SELECT 1 FROM messages r WHERE r.queue = CAST(@queue AS TEXT) AND r.stage = 0) AS INTEGER) AS ready,
  CAST(COALESCE((SELECT d.place FROM messages d WHERE d.queue = CAST(@queue AS TEXT) AND d.stage = -1 ORDER BY d.place LIMIT 1), 0) AS INTEGER) AS next_due,
  CAST(COALESCE((SELECT COALESCE(l.place, 1) FROM messages l WHERE l.queue = CAST(@queue AS TEXT) AND l.stage = 1 ORDER BY l.place LIMIT 1), 0) AS INTEGER) AS next_lease_end,
  CAST(EXISTS (SELECT 1 FROM queues q WHERE q.name = CAST(@queue AS TEXT) AND q.paused <> 0) AS INTEGER) AS paused;
