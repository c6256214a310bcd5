-- Claim takes the next job: one seek for the highest priority, then the lowest id, among claimable rows only.
-- It takes nothing while the queue is paused, and nothing while a delayed job is due or a lease has ended, because
-- those may come first: the engine then promotes and reclaims in the same transaction, and claims with ClaimMany.
-- Two seeks here spare those statements to every claim that doesn't need them. A lease without an end (NULL sorts
-- first) counts as ended. max(delivery, attempts): a row claimed by the original has attempts but no delivery number.
-- name: Claim :one
UPDATE messages SET status = 1, attempts = attempts + 1, delivery = max(delivery, attempts) + 1,
  receipt = (max(delivery, attempts) + 1) || '-' || lower(hex(randomblob(16))),
  lease_until = CAST(@now AS INTEGER) + CAST(@lease AS INTEGER), updated_at = CAST(@now AS INTEGER), claimed_at = CAST(@now AS INTEGER), claimed_by = CAST(@worker AS TEXT)
WHERE id = (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.status = 0 AND m.delayed = 0 ORDER BY m.priority DESC, m.id LIMIT 1)
  AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.name = CAST(@queue AS TEXT) AND q.paused <> 0)
  AND NOT COALESCE((SELECT d.available_at <= CAST(@now AS INTEGER) FROM messages d
                    WHERE d.queue = CAST(@queue AS TEXT) AND d.status = 0 AND d.delayed = 1 ORDER BY d.available_at LIMIT 1), 0)
  AND NOT COALESCE((SELECT COALESCE(l.lease_until, 0) <= CAST(@now AS INTEGER) FROM messages l
                    WHERE l.queue = CAST(@queue AS TEXT) AND l.status = 1 ORDER BY l.lease_until LIMIT 1), 0)
RETURNING id, CAST(receipt AS TEXT) AS receipt, attempts, max_attempts, delivery, priority, job_id, headers, last_error, created_at, CAST(lease_until AS INTEGER) AS lease_until,
  CAST(iif(length(payload) > 0, payload, COALESCE((SELECT p.data FROM payloads p WHERE p.message_id = messages.id), payload)) AS BLOB);

-- ClaimMany takes up to n jobs, after the engine has promoted and reclaimed. The CAST of every parameter inside the
-- ordered sub-select and the LIMIT matters: without it the statement is planned anew at every call.
-- name: ClaimMany :many
UPDATE messages SET status = 1, attempts = attempts + 1, delivery = max(delivery, attempts) + 1,
  receipt = (max(delivery, attempts) + 1) || '-' || lower(hex(randomblob(16))),
  lease_until = CAST(@now AS INTEGER) + CAST(@lease AS INTEGER), updated_at = CAST(@now AS INTEGER), claimed_at = CAST(@now AS INTEGER), claimed_by = CAST(@worker AS TEXT)
WHERE id IN (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.status = 0 AND m.delayed = 0 ORDER BY m.priority DESC, m.id LIMIT CAST(@n AS INTEGER))
  AND NOT EXISTS (SELECT 1 FROM queues q WHERE q.name = CAST(@queue AS TEXT) AND q.paused <> 0)
RETURNING id, CAST(receipt AS TEXT) AS receipt, attempts, max_attempts, delivery, priority, job_id, headers, last_error, created_at, CAST(lease_until AS INTEGER) AS lease_until,
  CAST(iif(length(payload) > 0, payload, COALESCE((SELECT p.data FROM payloads p WHERE p.message_id = messages.id), payload)) AS BLOB);

-- Outlook answers what a receiver must know without the write lock: is anything claimable, what falls due or ends
-- next (0: nothing), is the queue paused. Three seeks; an idle poll costs no more.
-- name: Outlook :one
SELECT CAST(EXISTS (SELECT 1 FROM messages r WHERE r.queue = CAST(@queue AS TEXT) AND r.status = 0 AND r.delayed = 0) AS INTEGER) AS ready,
  CAST(COALESCE((SELECT d.available_at FROM messages d WHERE d.queue = CAST(@queue AS TEXT) AND d.status = 0 AND d.delayed = 1 ORDER BY d.available_at LIMIT 1), 0) AS INTEGER) AS next_due,
  CAST(COALESCE((SELECT COALESCE(l.lease_until, 1) FROM messages l WHERE l.queue = CAST(@queue AS TEXT) AND l.status = 1 ORDER BY l.lease_until LIMIT 1), 0) AS INTEGER) AS next_lease_end,
  CAST(EXISTS (SELECT 1 FROM queues q WHERE q.name = CAST(@queue AS TEXT) AND q.paused <> 0) AS INTEGER) AS paused;
