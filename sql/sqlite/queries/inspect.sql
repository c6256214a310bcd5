-- Stats is one snapshot in one statement. The counters are kept by triggers; what is counted here is only what has
-- fallen due or expired and was not picked up yet.
-- name: Stats :one
SELECT CAST(q.ready AS INTEGER) AS ready, CAST(q.leased AS INTEGER) AS leased, CAST(q.acked AS INTEGER) AS acked, CAST(q.failed AS INTEGER) AS failed,
  q.paused, q.keep_acked,
  CAST(q.delayed - (SELECT count(*) FROM messages d WHERE d.queue = q.name AND d.stage = -1 AND d.place <= CAST(@now AS INTEGER)) AS INTEGER) AS waiting,
  CAST((SELECT count(*) FROM messages l WHERE l.queue = q.name AND l.stage = 1 AND l.place <= CAST(@now AS INTEGER))
     + (SELECT count(*) FROM messages e WHERE e.queue = q.name AND e.stage = 1 AND e.place IS NULL) AS INTEGER) AS expired
FROM queues q WHERE q.name = @queue;

-- OldestDue is the creation time of the oldest job that could run now (0: none): the lowest id of each priority, since
-- ids rise with time, found by walking the priorities that occur, and the delayed jobs that are due.
-- name: OldestDue :one
WITH RECURSIVE p(place) AS (
 SELECT (SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 0 ORDER BY m.place LIMIT 1)
 UNION ALL
 SELECT (SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 0 AND m.place > p.place ORDER BY m.place LIMIT 1)
 FROM p WHERE p.place IS NOT NULL),
due(created_at) AS (
 SELECT (SELECT m.created_at FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 0 AND m.place = p.place ORDER BY m.id LIMIT 1)
 FROM p WHERE p.place IS NOT NULL
 UNION ALL
 SELECT min(d.created_at) FROM messages d WHERE d.queue = CAST(@queue AS TEXT) AND d.stage = -1 AND d.place <= CAST(@now AS INTEGER))
SELECT CAST(COALESCE(min(due.created_at), 0) AS INTEGER) FROM due;

-- Queues lists every queue that ever had a job or a setting.
-- name: Queues :many
SELECT name FROM queues ORDER BY name;

-- Job reads one job of a queue by id.
-- name: Job :one
SELECT * FROM jobs WHERE id = @id AND +queue = CAST(@queue AS TEXT);

-- JobByKey finds the newest job that was put under a key: a key held only while pending may stand on several rows.
-- Each half is the predicate of an index: the keys that are held, and those that finished jobs have given up.
-- name: JobByKey :one
SELECT * FROM jobs WHERE id = (SELECT max(k.id) FROM (
  SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.job_id = CAST(@job_id AS TEXT) AND (m.key_scope = 0 OR m.status < 2)
  UNION ALL
  SELECT f.id FROM messages f WHERE f.queue = CAST(@queue AS TEXT) AND f.job_id = CAST(@job_id AS TEXT) AND f.key_scope = 1 AND f.status > 1) k);

-- History is a job's failed deliveries, oldest first.
-- name: History :many
SELECT delivery, attempt, started_at, ended_at, outcome, error, worker FROM deliveries WHERE message_id = CAST(@message_id AS INTEGER) ORDER BY delivery;

-- The lists page by key in the order of the index that serves their state; the row-value comparison is what makes the
-- next page a seek. Each is the order in which its reader wants to see them.

-- ListReady: in the order of claiming. place is the priority turned round.
-- name: ListReady :many
SELECT * FROM jobs WHERE queue = CAST(@queue AS TEXT) AND stage = 0 AND (place, id) > (-CAST(@priority AS INTEGER), CAST(@after_id AS INTEGER))
ORDER BY place, id LIMIT CAST(@n AS INTEGER);

-- ListDelayed: by the time they fall due.
-- name: ListDelayed :many
SELECT * FROM jobs WHERE queue = CAST(@queue AS TEXT) AND stage = -1 AND (place, id) > (CAST(@after_time AS INTEGER), CAST(@after_id AS INTEGER))
ORDER BY place, id LIMIT CAST(@n AS INTEGER);

-- ListLeased: by the end of the lease.
-- name: ListLeased :many
SELECT * FROM jobs WHERE queue = CAST(@queue AS TEXT) AND stage = 1 AND (place, id) > (CAST(@after_time AS INTEGER), CAST(@after_id AS INTEGER))
ORDER BY place, id LIMIT CAST(@n AS INTEGER);

-- ListAcked: by the time of settling.
-- name: ListAcked :many
SELECT * FROM jobs WHERE queue = CAST(@queue AS TEXT) AND stage = 2 AND (place, id) > (CAST(@after_time AS INTEGER), CAST(@after_id AS INTEGER))
ORDER BY place, id LIMIT CAST(@n AS INTEGER);

-- ListFailed: by id.
-- name: ListFailed :many
SELECT * FROM jobs WHERE queue = CAST(@queue AS TEXT) AND status = 3 AND id > CAST(@after_id AS INTEGER)
ORDER BY id LIMIT CAST(@n AS INTEGER);

-- PeekDue and PeekExpired are what the next claim would promote and reclaim before it chooses.
-- name: PeekDue :many
SELECT m.id, m.priority FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = -1 AND m.place <= CAST(@now AS INTEGER)
ORDER BY m.place LIMIT CAST(@n AS INTEGER);

-- name: PeekExpired :many
SELECT m.id, m.priority FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 1 AND m.place <= CAST(@now AS INTEGER) AND m.attempts < m.max_attempts
ORDER BY m.place LIMIT CAST(@n AS INTEGER);

-- StateIDs walks through the ids for the jobs of one state; no index serves every state by age. It reads n rows and says
-- which are picked, so that the snapshot is short whatever it finds, and a gap between ids costs nothing.
-- name: StateIDs :many
SELECT p.id, CAST(p.queue = CAST(@queue AS TEXT) AND p.status = CAST(@status AS INTEGER) AND p.delayed = CAST(@delayed AS INTEGER)
  AND p.updated_at <= CAST(@before AS INTEGER) AS INTEGER) AS picked
FROM (SELECT m.id, m.queue, m.status, m.delayed, m.updated_at FROM messages m WHERE m.id > CAST(@after AS INTEGER) AND m.id <= CAST(@upto AS INTEGER)
      ORDER BY m.id LIMIT CAST(@n AS INTEGER)) p;
