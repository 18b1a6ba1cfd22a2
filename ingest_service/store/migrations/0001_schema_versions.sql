CREATE SCHEMA hot;

CREATE TABLE hot.schema_versions (
    version INTEGER PRIMARY KEY,
    name VARCHAR NOT NULL,
    apply_time_utc TIMESTAMP NOT NULL
);
COMMENT ON TABLE hot.schema_versions IS 'Migrations that made this schema, one row each.';
COMMENT ON COLUMN hot.schema_versions.version IS 'Number of the migration: 1, 2, 3, ...';
COMMENT ON COLUMN hot.schema_versions.name IS 'Its name.';
COMMENT ON COLUMN hot.schema_versions.apply_time_utc IS 'When it was applied, UTC.';
