-- SchemaVersion is the newest migration that goose has applied to the file; read before anything else is prepared.
-- name: SchemaVersion :one
SELECT CAST(COALESCE(max(version_id), 0) AS INTEGER) FROM goose_db_version WHERE is_applied;
