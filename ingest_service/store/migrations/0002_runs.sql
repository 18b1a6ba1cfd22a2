CREATE TABLE hot.runs (
    run_id VARCHAR PRIMARY KEY,
    display_name VARCHAR NOT NULL,
    state VARCHAR NOT NULL,
    create_time_utc TIMESTAMP NOT NULL,
    seal_time_utc TIMESTAMP,
    source VARCHAR NOT NULL,
    content_digest BLOB NOT NULL
);
COMMENT ON TABLE hot.runs IS 'One benchmark, training or tracing session each.';
COMMENT ON COLUMN hot.runs.run_id IS 'Id of the run.';
COMMENT ON COLUMN hot.runs.display_name IS 'What people call it.';
COMMENT ON COLUMN hot.runs.state IS 'OPEN: records can be appended. SEALED: nothing changes any more.';
COMMENT ON COLUMN hot.runs.create_time_utc IS 'When the service created it, UTC.';
COMMENT ON COLUMN hot.runs.seal_time_utc IS 'When it was sealed, UTC. NULL while open.';
COMMENT ON COLUMN hot.runs.source IS 'Where the records come from: a study, a host, a file.';
COMMENT ON COLUMN hot.runs.content_digest IS 'Digest of what the run was created with; tells a repetition from other content.';

CREATE TABLE hot.settings (
    run_id VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    PRIMARY KEY (run_id, key)
);
COMMENT ON TABLE hot.settings IS 'Settings of runs as words, one row per setting.';
COMMENT ON COLUMN hot.settings.run_id IS 'The run.';
COMMENT ON COLUMN hot.settings.key IS 'Name of the setting, such as engine, link, nccl.ib_hca.';
COMMENT ON COLUMN hot.settings.value IS 'Its value, in words.';

CREATE TABLE hot.predictions (
    run_id VARCHAR NOT NULL,
    prediction_index INTEGER NOT NULL,
    made_after_the_fact BOOLEAN NOT NULL,
    estimator_version VARCHAR NOT NULL,
    store_time_utc TIMESTAMP NOT NULL,
    PRIMARY KEY (run_id, prediction_index)
);
COMMENT ON TABLE hot.predictions IS 'Predictions of runs. The one that was frozen with the run has made_after_the_fact false; a run without one has no such row.';
COMMENT ON COLUMN hot.predictions.run_id IS 'The run.';
COMMENT ON COLUMN hot.predictions.prediction_index IS 'Position among the predictions of the run, from 0, in the order in which they were stored.';
COMMENT ON COLUMN hot.predictions.made_after_the_fact IS 'false: stored when the run was created, before anything was measured. true: stored later.';
COMMENT ON COLUMN hot.predictions.estimator_version IS 'Version of the estimator that made it.';
COMMENT ON COLUMN hot.predictions.store_time_utc IS 'When the service stored it, UTC.';

CREATE TABLE hot.predicted_values (
    run_id VARCHAR NOT NULL,
    prediction_index INTEGER NOT NULL,
    value_index INTEGER NOT NULL,
    metric VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    lower DOUBLE,
    expected DOUBLE,
    upper DOUBLE,
    lower_basis VARCHAR,
    expected_basis VARCHAR,
    upper_basis VARCHAR,
    binding_constraint VARCHAR,
    effects_left_out VARCHAR[],
    transfer_fixed_seconds DOUBLE,
    transfer_sent_bytes_per_rank BIGINT,
    transfer_assumed_bytes_per_second DOUBLE,
    transfer_assumed_source VARCHAR,
    baseline_mean DOUBLE,
    baseline_minimum DOUBLE,
    baseline_maximum DOUBLE,
    baseline_round_count INTEGER,
    baseline_run_id VARCHAR,
    missing_inputs VARCHAR[] NOT NULL,
    assumptions VARCHAR[] NOT NULL,
    PRIMARY KEY (run_id, prediction_index, value_index)
);
COMMENT ON TABLE hot.predicted_values IS 'Predicted values of runs, one row per metric and subject.';
COMMENT ON COLUMN hot.predicted_values.run_id IS 'The run.';
COMMENT ON COLUMN hot.predicted_values.prediction_index IS 'Which prediction of the run.';
COMMENT ON COLUMN hot.predicted_values.value_index IS 'Position in the prediction, from 0.';
COMMENT ON COLUMN hot.predicted_values.metric IS 'The metric; its name ends in the unit of the values beside it.';
COMMENT ON COLUMN hot.predicted_values.subject IS 'What it is about: a test, a collective setup, a training setup.';
COMMENT ON COLUMN hot.predicted_values.lower IS 'Nothing can be below this, in the unit of the metric. NULL: not predicted, inputs are missing.';
COMMENT ON COLUMN hot.predicted_values.expected IS 'The most likely value, in the unit of the metric. NULL: no calibration covers it.';
COMMENT ON COLUMN hot.predicted_values.upper IS 'Nothing covered by the model can be above this, in the unit of the metric. NULL: nothing bounds it.';
COMMENT ON COLUMN hot.predicted_values.lower_basis IS 'Where lower comes from: FORMULA, CALIBRATED, MEASURED, MIXED, NOMINAL. NULL: not predicted.';
COMMENT ON COLUMN hot.predicted_values.expected_basis IS 'Where expected comes from. NULL: not predicted.';
COMMENT ON COLUMN hot.predicted_values.upper_basis IS 'Where upper comes from. NULL: not predicted.';
COMMENT ON COLUMN hot.predicted_values.binding_constraint IS 'What limits the quantity at the bound. NULL: not predicted.';
COMMENT ON COLUMN hot.predicted_values.effects_left_out IS 'What the numbers are silent about. NULL: not predicted.';
COMMENT ON COLUMN hot.predicted_values.transfer_fixed_seconds IS 'Seconds that do not depend on the bandwidth. NULL: the metric does not follow from a bandwidth.';
COMMENT ON COLUMN hot.predicted_values.transfer_sent_bytes_per_rank IS 'Bytes that one rank sends. NULL: as transfer_fixed_seconds.';
COMMENT ON COLUMN hot.predicted_values.transfer_assumed_bytes_per_second IS 'Effective bandwidth that the prediction used, one direction of one rank. NULL: as transfer_fixed_seconds.';
COMMENT ON COLUMN hot.predicted_values.transfer_assumed_source IS 'Where the assumed bandwidth comes from. NULL: as transfer_fixed_seconds.';
COMMENT ON COLUMN hot.predicted_values.baseline_mean IS 'Measured value that the metric is counted from, in its unit. NULL: the metric is not a difference.';
COMMENT ON COLUMN hot.predicted_values.baseline_minimum IS 'Smallest round of the baseline. NULL: no baseline, or its source does not say.';
COMMENT ON COLUMN hot.predicted_values.baseline_maximum IS 'Largest round of the baseline. NULL: no baseline, or its source does not say.';
COMMENT ON COLUMN hot.predicted_values.baseline_round_count IS 'Rounds behind the baseline. NULL: no baseline, or its source does not say.';
COMMENT ON COLUMN hot.predicted_values.baseline_run_id IS 'Run that measured the baseline; empty where it came from elsewhere. NULL: no baseline.';
COMMENT ON COLUMN hot.predicted_values.missing_inputs IS 'Inputs that a prediction would need and nobody stated.';
COMMENT ON COLUMN hot.predicted_values.assumptions IS 'What was assumed.';
