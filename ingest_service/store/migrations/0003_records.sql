CREATE TABLE hot.requests (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    record_index INTEGER NOT NULL,
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
COMMENT ON TABLE hot.requests IS 'Requests as their clients saw them; tokens has the times of their chunks.';
COMMENT ON COLUMN hot.requests.run_id IS 'The run.';
COMMENT ON COLUMN hot.requests.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN hot.requests.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN hot.requests.record_index IS 'Position in that append, from 0.';
COMMENT ON COLUMN hot.requests.subject IS 'The test that it belongs to, such as P4.';
COMMENT ON COLUMN hot.requests.round_index IS 'Measured round, from 0; warm-up rounds are negative.';
COMMENT ON COLUMN hot.requests.request_index IS 'Position in the round, from 0.';
COMMENT ON COLUMN hot.requests.prompt_tokens IS 'Tokens of the prompt.';
COMMENT ON COLUMN hot.requests.output_tokens IS 'Tokens generated.';
COMMENT ON COLUMN hot.requests.send_ns IS 'When it was sent, CLOCK_MONOTONIC of the client''s host. NULL: not known.';
COMMENT ON COLUMN hot.requests.ttft_ns IS 'Send to first generated token received. NULL: no token came.';
COMMENT ON COLUMN hot.requests.last_token_ns IS 'Send to last token received. NULL: it did not finish.';
COMMENT ON COLUMN hot.requests.first_chunk_tokens IS 'Tokens that came with the first chunk. NULL: 1.';
COMMENT ON COLUMN hot.requests.send_time_unix_ns IS 'Wall clock at the send; never subtract two of these. NULL: not known.';
COMMENT ON COLUMN hot.requests.node IS 'Host whose clocks these are. Empty where not known.';
COMMENT ON COLUMN hot.requests.boot_id IS 'Boot of that host; monotonic times of two boots do not compare. Empty where not known.';

CREATE TABLE hot.metric_aggregates (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    record_index INTEGER NOT NULL,
    metric VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    mean DOUBLE NOT NULL,
    minimum DOUBLE,
    maximum DOUBLE,
    round_count INTEGER,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE hot.metric_aggregates IS 'Metrics over several rounds, from sources that state no more than that.';
COMMENT ON COLUMN hot.metric_aggregates.run_id IS 'The run.';
COMMENT ON COLUMN hot.metric_aggregates.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN hot.metric_aggregates.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN hot.metric_aggregates.record_index IS 'Position in that append, from 0.';
COMMENT ON COLUMN hot.metric_aggregates.metric IS 'The metric; its name ends in the unit of the values beside it.';
COMMENT ON COLUMN hot.metric_aggregates.subject IS 'What it is about, as in the prediction.';
COMMENT ON COLUMN hot.metric_aggregates.mean IS 'Mean over the rounds, in the unit of the metric.';
COMMENT ON COLUMN hot.metric_aggregates.minimum IS 'Smallest round. NULL: the source does not say.';
COMMENT ON COLUMN hot.metric_aggregates.maximum IS 'Largest round. NULL: the source does not say.';
COMMENT ON COLUMN hot.metric_aggregates.round_count IS 'Rounds behind the mean. NULL: the source does not say.';
COMMENT ON COLUMN hot.metric_aggregates.source IS 'Where it is printed.';

CREATE TABLE hot.collectives (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    record_index INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    rank_count INTEGER NOT NULL,
    message_bytes BIGINT,
    seconds DOUBLE,
    bus_bandwidth_bytes_per_second DOUBLE NOT NULL,
    error_count BIGINT,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE hot.collectives IS 'Lines of collective benchmarks.';
COMMENT ON COLUMN hot.collectives.run_id IS 'The run.';
COMMENT ON COLUMN hot.collectives.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN hot.collectives.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN hot.collectives.record_index IS 'Position in that append, from 0.';
COMMENT ON COLUMN hot.collectives.subject IS 'The setup, as in the prediction.';
COMMENT ON COLUMN hot.collectives.kind IS 'The collective; UNSPECIFIED where the source does not say.';
COMMENT ON COLUMN hot.collectives.rank_count IS 'Ranks of the group.';
COMMENT ON COLUMN hot.collectives.message_bytes IS 'Payload. NULL: the source does not say.';
COMMENT ON COLUMN hot.collectives.seconds IS 'Time of one operation. NULL: the source does not say.';
COMMENT ON COLUMN hot.collectives.bus_bandwidth_bytes_per_second IS 'Bus bandwidth as nccl-tests defines it.';
COMMENT ON COLUMN hot.collectives.error_count IS 'Wrong values that the benchmark counted. NULL: not checked.';
COMMENT ON COLUMN hot.collectives.source IS 'Where it is printed.';

CREATE TABLE hot.training_steps (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    record_index INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    node_count INTEGER NOT NULL,
    step_index BIGINT,
    step_seconds DOUBLE,
    samples_per_second DOUBLE,
    tokens_per_second DOUBLE,
    elapsed_seconds DOUBLE,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE hot.training_steps IS 'Training steps, or means of several.';
COMMENT ON COLUMN hot.training_steps.run_id IS 'The run.';
COMMENT ON COLUMN hot.training_steps.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN hot.training_steps.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN hot.training_steps.record_index IS 'Position in that append, from 0.';
COMMENT ON COLUMN hot.training_steps.subject IS 'The setup, as in the prediction.';
COMMENT ON COLUMN hot.training_steps.node_count IS 'Nodes, one rank each.';
COMMENT ON COLUMN hot.training_steps.step_index IS 'Number of the step in the job, from 0. NULL: the row is a mean.';
COMMENT ON COLUMN hot.training_steps.step_seconds IS 'Step time. NULL: the source does not say.';
COMMENT ON COLUMN hot.training_steps.samples_per_second IS 'Samples of the whole cluster. NULL: the source does not say.';
COMMENT ON COLUMN hot.training_steps.tokens_per_second IS 'Tokens of the whole cluster. NULL: the source does not say.';
COMMENT ON COLUMN hot.training_steps.elapsed_seconds IS 'The whole job. NULL: the source does not say.';
COMMENT ON COLUMN hot.training_steps.source IS 'Where it is printed.';

CREATE TABLE hot.tokens (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    record_index INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    round_index INTEGER NOT NULL,
    request_index INTEGER NOT NULL,
    chunk_index INTEGER NOT NULL,
    offset_ns BIGINT NOT NULL,
    token_count INTEGER NOT NULL
);
COMMENT ON TABLE hot.tokens IS 'Chunks of tokens as clients received them, one row each; run_id, writer_id, sequence_number and record_index are those of their row of requests.';
COMMENT ON COLUMN hot.tokens.run_id IS 'The run.';
COMMENT ON COLUMN hot.tokens.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN hot.tokens.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN hot.tokens.record_index IS 'Position of the request in that append, from 0.';
COMMENT ON COLUMN hot.tokens.subject IS 'The test that the request belongs to.';
COMMENT ON COLUMN hot.tokens.round_index IS 'Measured round, from 0; warm-up rounds are negative.';
COMMENT ON COLUMN hot.tokens.request_index IS 'Position of the request in the round, from 0.';
COMMENT ON COLUMN hot.tokens.chunk_index IS 'Position of the chunk in the request, from 0.';
COMMENT ON COLUMN hot.tokens.offset_ns IS 'Send of the request to receipt of the chunk.';
COMMENT ON COLUMN hot.tokens.token_count IS 'Tokens that came with it.';

CREATE TABLE hot.link_tests (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    record_index INTEGER NOT NULL,
    subject VARCHAR NOT NULL,
    tool VARCHAR NOT NULL,
    source_node VARCHAR NOT NULL,
    destination_node VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    direction VARCHAR NOT NULL,
    message_bytes BIGINT,
    bits_per_second DOUBLE,
    latency_seconds DOUBLE,
    mtu_bytes INTEGER,
    source VARCHAR NOT NULL
);
COMMENT ON TABLE hot.link_tests IS 'Tests of links between two nodes, such as lines of ib_write_bw or iperf3.';
COMMENT ON COLUMN hot.link_tests.run_id IS 'The run.';
COMMENT ON COLUMN hot.link_tests.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN hot.link_tests.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN hot.link_tests.record_index IS 'Position in that append, from 0.';
COMMENT ON COLUMN hot.link_tests.subject IS 'What was tested.';
COMMENT ON COLUMN hot.link_tests.tool IS 'The program: ib_write_bw, iperf3.';
COMMENT ON COLUMN hot.link_tests.source_node IS 'Node that sends; of a test of both ways one of the two. Empty where not known.';
COMMENT ON COLUMN hot.link_tests.destination_node IS 'Node that receives. Empty where not known.';
COMMENT ON COLUMN hot.link_tests.device IS 'Device of the sending node. Empty where not known.';
COMMENT ON COLUMN hot.link_tests.direction IS 'ONE_WAY; BOTH_WAYS, where the rate is the sum; UNSPECIFIED where the source does not say.';
COMMENT ON COLUMN hot.link_tests.message_bytes IS 'Bytes of one message. NULL: the source does not say.';
COMMENT ON COLUMN hot.link_tests.bits_per_second IS 'Payload carried. NULL: the test measures times alone.';
COMMENT ON COLUMN hot.link_tests.latency_seconds IS 'Time of one message one way. NULL: the test measures a rate alone.';
COMMENT ON COLUMN hot.link_tests.mtu_bytes IS 'Largest transfer unit of the link. NULL: the source does not say.';
COMMENT ON COLUMN hot.link_tests.source IS 'Where it is printed.';

CREATE TABLE hot.events (
    run_id VARCHAR NOT NULL,
    writer_id VARCHAR NOT NULL,
    sequence_number BIGINT NOT NULL,
    record_index INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    subject VARCHAR NOT NULL,
    node VARCHAR NOT NULL,
    boot_id VARCHAR NOT NULL,
    time_ns BIGINT,
    time_unix_ns BIGINT,
    event_count BIGINT,
    text VARCHAR NOT NULL
);
COMMENT ON TABLE hot.events IS 'What happened while runs were measured; a clock_anchor holds both clocks of a node at one moment.';
COMMENT ON COLUMN hot.events.run_id IS 'The run.';
COMMENT ON COLUMN hot.events.writer_id IS 'Writer that appended it.';
COMMENT ON COLUMN hot.events.sequence_number IS 'Number of the append that brought it; see ledger.';
COMMENT ON COLUMN hot.events.record_index IS 'Position in that append, from 0.';
COMMENT ON COLUMN hot.events.kind IS 'What happened, as one word: clock_anchor.';
COMMENT ON COLUMN hot.events.subject IS 'What it is about. Empty for the whole run.';
COMMENT ON COLUMN hot.events.node IS 'Host whose clocks these are. Empty where not known.';
COMMENT ON COLUMN hot.events.boot_id IS 'Boot of that host; monotonic times of two boots do not compare. Empty where not known.';
COMMENT ON COLUMN hot.events.time_ns IS 'When, CLOCK_MONOTONIC of that host. NULL: not known.';
COMMENT ON COLUMN hot.events.time_unix_ns IS 'When, by the wall clock of that host; never subtract two of these. NULL: not known.';
COMMENT ON COLUMN hot.events.event_count IS 'How many of them. NULL: the event is not a count.';
COMMENT ON COLUMN hot.events.text IS 'For people.';
