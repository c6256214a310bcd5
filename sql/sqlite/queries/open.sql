-- SchemaVersion is the newest migration that goose has applied to the file; read before anything else is prepared.
-- name: SchemaVersion :one
SELECT CAST(COALESCE(max(version_id), 0) AS INTEGER) FROM goose_db_version WHERE is_applied;

-- ForgetStatistics undoes an ANALYZE. Figures taken while a queue was nearly empty make every batch statement walk all
-- rows for good, also when it has filled again; without figures the plans are the ones the queries are written for.
-- name: ForgetStatistics :exec
DROP TABLE IF EXISTS sqlite_stat1;

-- AppliedMigrations is goose's record of what was applied, and when.
-- name: AppliedMigrations :many
SELECT version_id, tstamp FROM goose_db_version WHERE is_applied AND version_id > 0;
