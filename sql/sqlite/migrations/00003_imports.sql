-- +goose Up
-- How far each import has come. The transaction that stores a batch of jobs also moves this on, so that an import which was
-- broken off goes on where it ended: nothing twice, nothing left out, also of jobs without a key.
CREATE TABLE imports (
    name       TEXT    NOT NULL PRIMARY KEY, -- of the export, or as the caller named it
    lines      INTEGER NOT NULL,             -- of the input that are in, from its top
    digest     TEXT    NOT NULL,             -- of those lines: another input under the same name is refused
    keeps_ids  INTEGER NOT NULL,             -- 1: the jobs have the ids of the input
    queue      TEXT,                         -- where the jobs went that named none; NULL: each has named its own
    started_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Which file this is, by chance: an export says where it comes from, so that it isn't brought into its own file by mistake,
-- nor finished with the jobs of another one. A backup is the same file.
CREATE TABLE identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id  TEXT NOT NULL
);
INSERT INTO identity VALUES (1, lower(hex(randomblob(16))));

-- +goose Down
DROP TABLE identity;
DROP TABLE imports; -- the jobs stay
