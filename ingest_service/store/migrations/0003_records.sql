CREATE TABLE request_records (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    subject VARCHAR NOT NULL,
    round_index INTEGER NOT NULL,
    request_index INTEGER NOT NULL,
    prompt_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    send_ns BIGINT,
    ttft_ns BIGINT,
    last_token_ns BIGINT,
    first_chunk_tokens INTEGER,
    send_time_unix_ns BIGINT,
    node VARCHAR NOT NULL,
    boot_id VARCHAR NOT NULL
);
COMMENT ON TABLE request_records IS 'Requests as their clients saw them.';
COMMENT ON COLUMN request_records.run_id IS 'The run.';
COMMENT ON COLUMN request_records.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN request_records.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN request_records.subject IS 'The test that it belongs to, such as P4.';
COMMENT ON COLUMN request_records.round_index IS 'Measured round, from 0; warm-up rounds are negative.';
COMMENT ON COLUMN request_records.request_index IS 'Position in the round, from 0.';
COMMENT ON COLUMN request_records.prompt_tokens IS 'Tokens of the prompt.';
COMMENT ON COLUMN request_records.output_tokens IS 'Tokens generated.';
COMMENT ON COLUMN request_records.send_ns IS 'When it was sent, CLOCK_MONOTONIC of the client''s host. NULL: not known.';
COMMENT ON COLUMN request_records.ttft_ns IS 'Send to first generated token received. NULL: no token came.';
COMMENT ON COLUMN request_records.last_token_ns IS 'Send to last token received. NULL: it did not finish.';
COMMENT ON COLUMN request_records.first_chunk_tokens IS 'Tokens that came with the first chunk. NULL: 1.';
COMMENT ON COLUMN request_records.send_time_unix_ns IS 'Wall clock at the send; never subtract two of these. NULL: not known.';
COMMENT ON COLUMN request_records.node IS 'Host whose clocks these are. Empty where not known.';
COMMENT ON COLUMN request_records.boot_id IS 'Boot of that host; monotonic times of two boots do not compare. Empty where not known.';

CREATE TABLE metric_aggregates (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    metric VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    mean DOUBLE NOT NULL,
    minimum DOUBLE,
    maximum DOUBLE,
    round_count INTEGER,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE metric_aggregates IS 'Metrics over several rounds, from sources that state no more than that.';
COMMENT ON COLUMN metric_aggregates.run_id IS 'The run.';
COMMENT ON COLUMN metric_aggregates.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN metric_aggregates.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN metric_aggregates.metric IS 'The metric; its name ends in the unit of the values beside it.';
COMMENT ON COLUMN metric_aggregates.subject IS 'What it is about, as in the prediction.';
COMMENT ON COLUMN metric_aggregates.mean IS 'Mean over the rounds, in the unit of the metric.';
COMMENT ON COLUMN metric_aggregates.minimum IS 'Smallest round. NULL: the source does not say.';
COMMENT ON COLUMN metric_aggregates.maximum IS 'Largest round. NULL: the source does not say.';
COMMENT ON COLUMN metric_aggregates.round_count IS 'Rounds behind the mean. NULL: the source does not say.';
COMMENT ON COLUMN metric_aggregates.source IS 'Where it is printed.';

CREATE TABLE collective_results (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    subject VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    rank_count INTEGER NOT NULL,
    message_bytes BIGINT,
    seconds DOUBLE,
    bus_bandwidth_bytes_per_second DOUBLE NOT NULL,
    error_count BIGINT,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE collective_results IS 'Lines of collective benchmarks.';
COMMENT ON COLUMN collective_results.run_id IS 'The run.';
COMMENT ON COLUMN collective_results.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN collective_results.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN collective_results.subject IS 'The setup, as in the prediction.';
COMMENT ON COLUMN collective_results.kind IS 'The collective; UNSPECIFIED where the source does not say.';
COMMENT ON COLUMN collective_results.rank_count IS 'Ranks of the group.';
COMMENT ON COLUMN collective_results.message_bytes IS 'Payload. NULL: the source does not say.';
COMMENT ON COLUMN collective_results.seconds IS 'Time of one operation. NULL: the source does not say.';
COMMENT ON COLUMN collective_results.bus_bandwidth_bytes_per_second IS 'Bus bandwidth as nccl-tests defines it.';
COMMENT ON COLUMN collective_results.error_count IS 'Wrong values that the benchmark counted. NULL: not checked.';
COMMENT ON COLUMN collective_results.source IS 'Where it is printed.';

CREATE TABLE training_steps (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    subject VARCHAR NOT NULL,
    node_count INTEGER NOT NULL,
    step_index BIGINT,
    step_seconds DOUBLE,
    samples_per_second DOUBLE,
    tokens_per_second DOUBLE,
    elapsed_seconds DOUBLE,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE training_steps IS 'Training steps, or means of several.';
COMMENT ON COLUMN training_steps.run_id IS 'The run.';
COMMENT ON COLUMN training_steps.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN training_steps.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN training_steps.subject IS 'The setup, as in the prediction.';
COMMENT ON COLUMN training_steps.node_count IS 'Nodes, one rank each.';
COMMENT ON COLUMN training_steps.step_index IS 'Number of the step in the job, from 0. NULL: the row is a mean.';
COMMENT ON COLUMN training_steps.step_seconds IS 'Step time. NULL: the source does not say.';
COMMENT ON COLUMN training_steps.samples_per_second IS 'Samples of the whole cluster. NULL: the source does not say.';
COMMENT ON COLUMN training_steps.tokens_per_second IS 'Tokens of the whole cluster. NULL: the source does not say.';
COMMENT ON COLUMN training_steps.elapsed_seconds IS 'The whole job. NULL: the source does not say.';
COMMENT ON COLUMN training_steps.source IS 'Where it is printed.';
