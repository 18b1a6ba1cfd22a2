CREATE TABLE hot.findings (
    run_id VARCHAR NOT NULL,
    code VARCHAR NOT NULL,
    severity VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    evidence VARCHAR NOT NULL,
    advice VARCHAR NOT NULL,
    query VARCHAR NOT NULL,
    create_time_utc TIMESTAMP NOT NULL
);
COMMENT ON TABLE hot.findings IS 'What a person should know about runs.';
COMMENT ON COLUMN hot.findings.run_id IS 'The run.';
COMMENT ON COLUMN hot.findings.code IS 'What it is, in capitals: BANDWIDTH_BELOW_ASSUMED.';
COMMENT ON COLUMN hot.findings.severity IS 'How bad it is: INFO, WARNING, ERROR.';
COMMENT ON COLUMN hot.findings.subject IS 'What it is about. Empty for the whole run.';
COMMENT ON COLUMN hot.findings.evidence IS 'The figures that show it.';
COMMENT ON COLUMN hot.findings.advice IS 'What to check or do.';
COMMENT ON COLUMN hot.findings.query IS 'The SELECT that shows the evidence. Empty where there is none.';
COMMENT ON COLUMN hot.findings.create_time_utc IS 'When the service found it, UTC.';
