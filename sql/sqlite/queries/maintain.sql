-- PurgeAcked and PurgeFailed remove finished jobs by age, a bounded step at a time, so that other work goes on between.
-- name: PurgeAcked :execrows
DELETE FROM messages WHERE id IN (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 2 AND m.place <= CAST(@before AS INTEGER) ORDER BY m.place LIMIT CAST(@n AS INTEGER));

-- name: PurgeFailed :execrows
DELETE FROM messages WHERE id IN (SELECT m.id FROM messages m WHERE m.queue = CAST(@queue AS TEXT) AND m.stage = 3 AND m.place <= CAST(@before AS INTEGER) ORDER BY m.place LIMIT CAST(@n AS INTEGER));

-- SetPaused and SetKeepAcked store a queue's settings; a queue that has had no job yet gets its row here.
-- name: SetPaused :exec
INSERT INTO queues (name, paused) VALUES (@queue, @paused) ON CONFLICT (name) DO UPDATE SET paused = excluded.paused;

-- name: SetKeepAcked :exec
INSERT INTO queues (name, keep_acked) VALUES (@queue, @keep_acked) ON CONFLICT (name) DO UPDATE SET keep_acked = excluded.keep_acked;

-- Settings reads them back.
-- name: Settings :one
SELECT paused, keep_acked FROM queues WHERE name = @queue;
