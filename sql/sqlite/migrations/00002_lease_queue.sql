-- +goose Up
ALTER TABLE messages ADD COLUMN priority   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE messages ADD COLUMN delayed    INTEGER NOT NULL DEFAULT 0; -- 1: ready, but out of the claim's sight until promoted
ALTER TABLE messages ADD COLUMN delivery   INTEGER NOT NULL DEFAULT 0; -- fencing number: grows with every claim, never reset
ALTER TABLE messages ADD COLUMN key_scope  INTEGER NOT NULL DEFAULT 0; -- 0: job_id is held while the row exists; 1: until the terminal state
ALTER TABLE messages ADD COLUMN claimed_at INTEGER;
ALTER TABLE messages ADD COLUMN claimed_by TEXT;
ALTER TABLE messages ADD COLUMN reason     TEXT;                       -- why it failed; not failure_reason: files of 1.3 on have that column
ALTER TABLE messages ADD COLUMN headers    TEXT;                       -- a JSON object of strings
-- Where a job stands, worked out from the columns above, whoever writes them; not stored but in the index below.
-- stage: its status, or -1 for a delayed job. place: its order in that stage, before the id: a ready job's priority, the
-- time a delayed one falls due, a lease's end, the time a finished one was settled.
ALTER TABLE messages ADD COLUMN stage INTEGER AS (iif(status = 0 AND delayed, -1, status)) VIRTUAL;
ALTER TABLE messages ADD COLUMN place INTEGER AS (CASE status WHEN 1 THEN lease_until WHEN 0 THEN iif(delayed, available_at, -priority) ELSE updated_at END) VIRTUAL;

-- The reason comes from the original's failure_reason where the file has that column (1.3 on), else it stays NULL:
-- the inner name resolves to a column of messages if there is one, and to the derived table's NULL otherwise.
UPDATE messages SET reason =
  (SELECT (SELECT failure_reason FROM messages AS m WHERE m.id = o.id)
   FROM (SELECT messages.id AS id, NULL AS failure_reason) AS o)
WHERE status = 3;
UPDATE messages SET delayed = 1 WHERE status = 0 AND available_at > CAST(unixepoch('subsec') * 1000 AS INTEGER);
UPDATE messages SET delivery = attempts WHERE attempts > 0;

-- Both names are the original's: it makes its indexes IF NOT EXISTS, so a later visit by it adds nothing.
DROP INDEX IF EXISTS idx_messages_job_id;
DROP INDEX IF EXISTS idx_messages_queue_status;
CREATE UNIQUE INDEX idx_messages_job_id ON messages(queue, job_id) WHERE job_id IS NOT NULL AND (key_scope = 0 OR status < 2);
-- One index for every stage (the rowid is its last key), and stage DESC in it: the ready job that a claim takes, the
-- leases, and the jobs acked last are neighbours, so that a job's way through the stages mostly dirties one page.
CREATE INDEX idx_messages_queue_status ON messages(queue, stage DESC, place);
CREATE INDEX messages_failed     ON messages(queue)                       WHERE status = 3;                 -- list the dead by id
CREATE INDEX messages_done_key  ON messages(queue, job_id)               WHERE job_id IS NOT NULL AND key_scope = 1 AND status > 1; -- show a key that was given up

CREATE TABLE payloads (message_id INTEGER PRIMARY KEY, data BLOB NOT NULL);

CREATE TABLE deliveries (          -- failed deliveries, the last 20 of a job
    message_id INTEGER NOT NULL,
    delivery   INTEGER NOT NULL,
    attempt    INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at   INTEGER NOT NULL,
    outcome    TEXT    NOT NULL,   -- nacked, failed, lease_expired, panic, cancelled
    error      TEXT,
    worker     TEXT,
    PRIMARY KEY (message_id, delivery)
) WITHOUT ROWID;

-- The counters have no NOT NULL: a constraint that a trigger could break makes SQLite copy every page before each
-- statement on messages changes it, to be able to undo half of one. They are never NULL all the same: the triggers only add.
CREATE TABLE queues (
    name       TEXT    NOT NULL PRIMARY KEY,
    ready      INTEGER DEFAULT 0, -- with the delayed ones
    delayed    INTEGER DEFAULT 0, -- not promoted yet
    leased     INTEGER DEFAULT 0,
    acked      INTEGER DEFAULT 0, -- rows kept
    failed     INTEGER DEFAULT 0,
    paused     INTEGER NOT NULL DEFAULT 0,
    keep_acked INTEGER                     -- ms; 0 deletes at the ack; NULL keeps until purged
) WITHOUT ROWID;

INSERT INTO queues (name, ready, delayed, leased, acked, failed)
SELECT queue, sum(status = 0), sum(status = 0 AND delayed), sum(status = 1), sum(status = 2), sum(status = 3) FROM messages GROUP BY queue;

-- What operators, lists and show read: a job with its bytes, wherever they are kept.
CREATE VIEW jobs AS
SELECT m.id, m.queue, m.status, m.delayed, m.priority, m.attempts, m.max_attempts, m.delivery, m.receipt, m.job_id, m.key_scope, m.headers,
       m.reason, m.last_error, m.available_at, m.lease_until, m.claimed_at, m.claimed_by, m.created_at, m.updated_at, m.stage, m.place,
       CAST(CASE WHEN length(m.payload) > 0 THEN m.payload
                 ELSE COALESCE((SELECT p.data FROM payloads p WHERE p.message_id = m.id), m.payload) END AS BLOB) AS payload
FROM messages m;

-- Triggers, so that every writer keeps the counts: ours, a caller's own transaction, the original, the sqlite3 shell.
-- +goose StatementBegin
CREATE TRIGGER messages_insert AFTER INSERT ON messages BEGIN
    INSERT INTO queues (name, ready, delayed, leased, acked, failed)
    VALUES (NEW.queue, NEW.status = 0, NEW.status = 0 AND NEW.delayed, NEW.status = 1, NEW.status = 2, NEW.status = 3)
    ON CONFLICT (name) DO UPDATE SET ready = ready + excluded.ready, delayed = delayed + excluded.delayed,
        leased = leased + excluded.leased, acked = acked + excluded.acked, failed = failed + excluded.failed;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER messages_update AFTER UPDATE OF status, delayed ON messages
WHEN OLD.status <> NEW.status OR OLD.delayed <> NEW.delayed BEGIN
    UPDATE queues SET
        ready   = ready   + (NEW.status = 0) - (OLD.status = 0),
        delayed = delayed + (NEW.status = 0 AND NEW.delayed) - (OLD.status = 0 AND OLD.delayed),
        leased  = leased  + (NEW.status = 1) - (OLD.status = 1),
        acked   = acked   + (NEW.status = 2) - (OLD.status = 2),
        failed  = failed  + (NEW.status = 3) - (OLD.status = 3)
    WHERE name = NEW.queue;
END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER messages_delete AFTER DELETE ON messages BEGIN
    UPDATE queues SET ready = ready - (OLD.status = 0), delayed = delayed - (OLD.status = 0 AND OLD.delayed),
        leased = leased - (OLD.status = 1), acked = acked - (OLD.status = 2), failed = failed - (OLD.status = 3)
    WHERE name = OLD.queue;
    DELETE FROM payloads   WHERE message_id = OLD.id;
    DELETE FROM deliveries WHERE message_id = OLD.id;
END;
-- +goose StatementEnd
-- A writer that does not know delayed (the original's nack with a delay): hold the row back for it. Not on a change of
-- status alone: claims and acks would pay for the look, and a job that comes back by itself keeps a time that has passed.
-- +goose StatementBegin
CREATE TRIGGER messages_hold AFTER UPDATE OF available_at ON messages
WHEN NEW.status = 0 AND NEW.delayed = 0 AND NEW.available_at > NEW.updated_at BEGIN
    UPDATE messages SET delayed = 1 WHERE id = NEW.id;
END;
-- +goose StatementEnd
-- A queue that keeps nothing (keep_acked = 0) loses the row with its ack, whoever acks it.
-- +goose StatementBegin
CREATE TRIGGER messages_drop AFTER UPDATE OF status ON messages
WHEN NEW.status = 2 AND (SELECT keep_acked FROM queues WHERE name = NEW.queue) = 0 BEGIN
    DELETE FROM messages WHERE id = NEW.id;
END;
-- +goose StatementEnd
-- The history of a job is bounded: its last 20 failed deliveries.
-- +goose StatementBegin
CREATE TRIGGER deliveries_trim AFTER INSERT ON deliveries WHEN NEW.delivery > 20 BEGIN
    DELETE FROM deliveries WHERE message_id = NEW.message_id AND delivery <=
        (SELECT d.delivery FROM deliveries d WHERE d.message_id = NEW.message_id ORDER BY d.delivery DESC LIMIT 1 OFFSET 20);
END;
-- +goose StatementEnd
PRAGMA application_id = 1280267601; -- "LOUQ": what marks a file as ours

-- +goose Down
-- Back to a file that the Python original reads: every job kept, its bytes in its row.
DROP VIEW jobs;
DROP TRIGGER deliveries_trim;
DROP TRIGGER messages_drop;
DROP TRIGGER messages_hold;
DROP TRIGGER messages_delete;
DROP TRIGGER messages_update;
DROP TRIGGER messages_insert;
UPDATE messages SET payload = (SELECT data FROM payloads WHERE message_id = id) WHERE id IN (SELECT message_id FROM payloads);
DROP TABLE queues;
DROP TABLE deliveries;
DROP TABLE payloads;
DROP INDEX messages_done_key;
DROP INDEX messages_failed;
DROP INDEX idx_messages_queue_status;
DROP INDEX idx_messages_job_id;
ALTER TABLE messages DROP COLUMN place;
ALTER TABLE messages DROP COLUMN stage;
ALTER TABLE messages DROP COLUMN headers;
ALTER TABLE messages DROP COLUMN reason;
ALTER TABLE messages DROP COLUMN claimed_by;
ALTER TABLE messages DROP COLUMN claimed_at;
ALTER TABLE messages DROP COLUMN delivery;
ALTER TABLE messages DROP COLUMN delayed;
ALTER TABLE messages DROP COLUMN priority;
-- A key that was held only while pending may stand on several finished rows; the original's index would refuse them.
UPDATE messages SET job_id = NULL WHERE key_scope = 1 AND status > 1;
ALTER TABLE messages DROP COLUMN key_scope;
CREATE UNIQUE INDEX idx_messages_job_id ON messages(queue, job_id) WHERE job_id IS NOT NULL;
CREATE INDEX idx_messages_queue_status ON messages(queue, status, available_at, lease_until);
PRAGMA application_id = 0;
