CREATE TABLE schema_versions (
    version INTEGER PRIMARY KEY,
    name VARCHAR NOT NULL,
    apply_time_utc TIMESTAMP NOT NULL
);
COMMENT ON TABLE schema_versions IS 'Migrations that made this schema, one row each.';
COMMENT ON COLUMN schema_versions.version IS 'Number of the migration: 1, 2, 3, ...';
COMMENT ON COLUMN schema_versions.name IS 'Its name.';
COMMENT ON COLUMN schema_versions.apply_time_utc IS 'When it was applied, UTC.';
