-- What Inspect tells of each queue beyond its Stats. Every part is a seek at one end of a stage: its cost doesn't grow.

-- QueueEdges: since when the job at the head of the line could be claimed, and the earliest and latest time in the other
-- stages (0: none): lease ends, due times of delayed jobs, settling of finished ones. A lease without an end sorts first.
-- name: QueueEdges :one
SELECT
  CAST(COALESCE((SELECT max(m.available_at, m.updated_at) FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 0 ORDER BY m.place LIMIT 1), 0) AS INTEGER) AS head_since,
  CAST(COALESCE((SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = -1 ORDER BY m.place LIMIT 1), 0) AS INTEGER) AS first_due,
  CAST(COALESCE((SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = -1 ORDER BY m.place DESC LIMIT 1), 0) AS INTEGER) AS last_due,
  CAST(COALESCE((SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 1 ORDER BY m.place LIMIT 1), 0) AS INTEGER) AS first_lease_end,
  CAST(COALESCE((SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 1 ORDER BY m.place DESC LIMIT 1), 0) AS INTEGER) AS last_lease_end,
  CAST(COALESCE((SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 2 ORDER BY m.place LIMIT 1), 0) AS INTEGER) AS first_acked,
  CAST(COALESCE((SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 2 ORDER BY m.place DESC LIMIT 1), 0) AS INTEGER) AS last_acked,
  CAST(COALESCE((SELECT m.place FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 3 ORDER BY m.place DESC LIMIT 1), 0) AS INTEGER) AS last_failed;

-- LatestStamp is the latest time of a put, a claim or a transition among the newest jobs. Ids rise with time: a clock that
-- runs ahead shows in them, and a look at every row is not needed.
-- name: LatestStamp :one
SELECT CAST(COALESCE(max(max(s.created_at, s.updated_at, COALESCE(s.claimed_at, 0))), 0) AS INTEGER)
FROM (SELECT m.created_at, m.updated_at, m.claimed_at FROM messages m ORDER BY m.id DESC LIMIT CAST(@n AS INTEGER)) s;
