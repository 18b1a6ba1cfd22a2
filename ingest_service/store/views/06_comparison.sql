CREATE OR REPLACE VIEW main.v_measured AS
WITH rounds AS (
    SELECT
        run_id,
        subject,
        round_index,
        count(*) AS request_count,
        count(ttft_seconds) AS ttft_count,
        max(ttft_seconds) AS last_ttft_seconds,
        least(greatest(fsum(ttft_seconds) / count(ttft_seconds), min(ttft_seconds)), max(ttft_seconds))
            AS mean_ttft_seconds,
        least(
            greatest(
                fsum(decode_tokens_per_second) / count(decode_tokens_per_second), min(decode_tokens_per_second)
            ),
            max(decode_tokens_per_second)
        ) AS decode_tokens_per_second
    FROM main.v_requests
    WHERE round_index >= 0
    GROUP BY run_id, subject, round_index
),
values_of_rounds AS (
    SELECT
        run_id,
        subject,
        unnest([
            {'metric': 'TTFT_SECONDS', 'amount': CASE WHEN is_whole AND request_count = 1 THEN last_ttft_seconds END},
            {'metric': 'LAST_TTFT_SECONDS', 'amount': CASE WHEN is_whole AND request_count > 1 THEN last_ttft_seconds END},
            {'metric': 'MEAN_TTFT_SECONDS', 'amount': CASE WHEN is_whole AND request_count > 1 THEN mean_ttft_seconds END},
            {'metric': 'DECODE_TOKENS_PER_SECOND', 'amount': decode_tokens_per_second}
        ], recursive := true)
    FROM (SELECT *, request_count = ttft_count AS is_whole FROM rounds)
),
values_of_steps AS (
    SELECT
        run_id,
        subject,
        step_index IS NOT NULL AS is_numbered,
        unnest([
            {'metric': 'TRAINING_STEP_SECONDS', 'amount': step_seconds},
            {'metric': 'TRAINING_TOKENS_PER_SECOND', 'amount': tokens_per_second},
            {'metric': 'TRAINING_SAMPLES_PER_SECOND', 'amount': samples_per_second},
            {'metric': 'TRAINING_ELAPSED_SECONDS', 'amount': elapsed_seconds}
        ], recursive := true)
    FROM main.training_steps
),
-- The later a source stands, the finer it is; of means that sources print, a single one has no range and no rounds.
sourced AS (
    SELECT run_id, subject, metric, 3 AS fineness, amount, true AS is_round FROM values_of_rounds
    UNION ALL
    SELECT run_id, subject, 'BUS_BANDWIDTH_BYTES_PER_SECOND', 2, bus_bandwidth_bytes_per_second, false
    FROM main.collectives
    WHERE coalesce(error_count, 0) = 0
    QUALIFY coalesce(message_bytes, 0) = max(coalesce(message_bytes, 0)) OVER (PARTITION BY run_id, subject)
    UNION ALL
    SELECT run_id, subject, metric, 1, amount, is_numbered
    FROM values_of_steps
    WHERE amount IS NOT NULL
    QUALIFY is_numbered = bool_or(is_numbered) OVER (PARTITION BY run_id, subject, metric)
),
folded AS (
    SELECT
        run_id,
        subject,
        metric,
        fineness,
        least(greatest(fsum(amount) / count(*), min(amount)), max(amount)) AS mean,
        CASE WHEN bool_and(is_round) OR count(*) > 1 THEN min(amount) END AS minimum,
        CASE WHEN bool_and(is_round) OR count(*) > 1 THEN max(amount) END AS maximum,
        CASE WHEN bool_and(is_round) OR count(*) > 1 THEN count(*)::INTEGER END AS round_count
    FROM sourced
    WHERE amount IS NOT NULL
    GROUP BY run_id, subject, metric, fineness
    UNION ALL
    SELECT run_id, subject, metric, 0, mean, minimum, maximum, round_count
    FROM main.metric_aggregates
    QUALIFY row_number() OVER (PARTITION BY run_id, subject, metric ORDER BY stored_index DESC) = 1
)
SELECT
    run_id,
    subject,
    metric,
    mean,
    minimum,
    maximum,
    round_count,
    ['AGGREGATE', 'TRAINING_STEPS', 'COLLECTIVES', 'REQUESTS'][fineness + 1] AS measured_by
FROM folded
QUALIFY row_number() OVER (PARTITION BY run_id, subject, metric ORDER BY fineness DESC) = 1;
COMMENT ON VIEW main.v_measured IS 'What was measured: one value per metric and subject, with its spread over rounds. Where several kinds of records state the same, the finer counts: requests and numbered training steps before what a source printed; of two aggregates the later.';
COMMENT ON COLUMN main.v_measured.run_id IS 'The run.';
COMMENT ON COLUMN main.v_measured.subject IS 'What it is about: a test, a collective setup, a training setup.';
COMMENT ON COLUMN main.v_measured.metric IS 'The metric; its name ends in the unit of the values beside it.';
COMMENT ON COLUMN main.v_measured.mean IS 'Mean over the rounds, in the unit of the metric.';
COMMENT ON COLUMN main.v_measured.minimum IS 'Smallest round. NULL: not stated.';
COMMENT ON COLUMN main.v_measured.maximum IS 'Largest round. NULL: not stated.';
COMMENT ON COLUMN main.v_measured.round_count IS 'Rounds behind the mean. NULL: not stated.';
COMMENT ON COLUMN main.v_measured.measured_by IS 'Records that it is made of: REQUESTS, COLLECTIVES, TRAINING_STEPS, AGGREGATE.';

CREATE OR REPLACE VIEW main.v_comparison AS
WITH frozen AS (
    SELECT
        predicted_values.*,
        CASE metric
            WHEN 'EXTRA_TTFT_SECONDS' THEN 'TTFT_SECONDS'
            WHEN 'EXTRA_LAST_TTFT_SECONDS' THEN 'LAST_TTFT_SECONDS'
            WHEN 'EXTRA_MEAN_TTFT_SECONDS' THEN 'MEAN_TTFT_SECONDS'
            ELSE metric
        END AS measured_metric
    FROM main.predicted_values
    SEMI JOIN (SELECT run_id, prediction_index FROM main.predictions WHERE NOT made_after_the_fact)
        USING (run_id, prediction_index)
),
both_sides AS (
    SELECT
        frozen.run_id,
        frozen.subject,
        frozen.metric,
        frozen.value_index,
        frozen.lower,
        frozen.expected,
        frozen.upper,
        frozen.binding_constraint,
        frozen.missing_inputs,
        frozen.baseline_mean,
        frozen.transfer_fixed_seconds,
        frozen.transfer_sent_bytes_per_rank,
        CASE WHEN frozen.transfer_assumed_bytes_per_second > 0 THEN frozen.transfer_assumed_bytes_per_second END
            AS assumed_bytes_per_second,
        measured.mean - coalesce(frozen.baseline_mean, 0) AS measured_mean,
        CASE WHEN frozen.baseline_mean IS NULL THEN measured.minimum
            ELSE measured.minimum - frozen.baseline_maximum END AS measured_minimum,
        CASE WHEN frozen.baseline_mean IS NULL THEN measured.maximum
            ELSE measured.maximum - frozen.baseline_minimum END AS measured_maximum,
        measured.round_count
    FROM frozen
    LEFT JOIN main.v_measured AS measured
        ON measured.run_id = frozen.run_id
        AND measured.subject = frozen.subject
        AND measured.metric = frozen.measured_metric
    UNION ALL BY NAME
    SELECT
        measured.run_id,
        measured.subject,
        measured.metric,
        measured.mean AS measured_mean,
        measured.minimum AS measured_minimum,
        measured.maximum AS measured_maximum,
        measured.round_count
    FROM main.v_measured AS measured
    ANTI JOIN frozen USING (run_id, subject, metric)
),
implied AS (
    SELECT
        *,
        CASE
            WHEN transfer_fixed_seconds IS NULL OR measured_mean IS NULL THEN NULL
            WHEN metric = 'BUS_BANDWIDTH_BYTES_PER_SECOND' THEN measured_mean
            WHEN (suffix(metric, 'TTFT_SECONDS') OR metric IN ('TRAINING_STEP_SECONDS', 'TRAINING_ELAPSED_SECONDS'))
                AND transfer_sent_bytes_per_rank > 0 AND measured_mean > transfer_fixed_seconds
                THEN transfer_sent_bytes_per_rank / (measured_mean - transfer_fixed_seconds)
        END AS implied_bytes_per_second
    FROM both_sides
)
SELECT
    run_id,
    subject,
    metric,
    value_index,
    lower,
    expected,
    upper,
    measured_mean,
    measured_minimum,
    measured_maximum,
    round_count,
    measured_mean >= lower AND (upper IS NULL OR measured_mean <= upper) AS is_inside_interval,
    baseline_mean,
    measured_mean / baseline_mean AS measured_fraction,
    assumed_bytes_per_second,
    implied_bytes_per_second,
    implied_bytes_per_second / assumed_bytes_per_second AS implied_bandwidth_ratio,
    binding_constraint,
    missing_inputs
FROM implied;
COMMENT ON VIEW main.v_comparison IS 'The frozen prediction of each run beside what was measured, one row per metric and subject that is predicted or measured, as CompareRun answers.';
COMMENT ON COLUMN main.v_comparison.run_id IS 'The run.';
COMMENT ON COLUMN main.v_comparison.subject IS 'What it is about: a test, a collective setup, a training setup.';
COMMENT ON COLUMN main.v_comparison.metric IS 'The metric; its name ends in the unit of the values beside it. Those that begin with EXTRA are counted from a baseline.';
COMMENT ON COLUMN main.v_comparison.value_index IS 'Position in the prediction, from 0. NULL: measured and not predicted.';
COMMENT ON COLUMN main.v_comparison.lower IS 'Nothing can be below this, in the unit of the metric. NULL: not predicted.';
COMMENT ON COLUMN main.v_comparison.expected IS 'The most likely value, in the unit of the metric. NULL: no calibration covers it.';
COMMENT ON COLUMN main.v_comparison.upper IS 'Nothing covered by the model can be above this, in the unit of the metric. NULL: nothing bounds it.';
COMMENT ON COLUMN main.v_comparison.measured_mean IS 'Mean over rounds, in the unit of the metric; of a difference, less the baseline. NULL: not measured.';
COMMENT ON COLUMN main.v_comparison.measured_minimum IS 'Smallest round; of a difference, less the largest round of the baseline. NULL: not stated.';
COMMENT ON COLUMN main.v_comparison.measured_maximum IS 'Largest round; of a difference, less the smallest round of the baseline. NULL: not stated.';
COMMENT ON COLUMN main.v_comparison.round_count IS 'Rounds behind the mean. NULL: not stated.';
COMMENT ON COLUMN main.v_comparison.is_inside_interval IS 'Whether the measured mean lies in the predicted interval. NULL: one of the two is missing.';
COMMENT ON COLUMN main.v_comparison.baseline_mean IS 'Measured value that the metric is counted from, in its unit. NULL: the metric is not a difference.';
COMMENT ON COLUMN main.v_comparison.measured_fraction IS 'measured_mean over the baseline. NULL: not measured, or not a difference.';
COMMENT ON COLUMN main.v_comparison.assumed_bytes_per_second IS 'Bandwidth that the prediction assumed, one direction of one rank. NULL: the metric does not follow from one.';
COMMENT ON COLUMN main.v_comparison.implied_bytes_per_second IS 'Bandwidth at which the bytes would explain the measurement, one direction of one rank. NULL: no bandwidth does.';
COMMENT ON COLUMN main.v_comparison.implied_bandwidth_ratio IS 'implied_bytes_per_second over assumed_bytes_per_second.';
COMMENT ON COLUMN main.v_comparison.binding_constraint IS 'What limits the quantity at the bound. NULL: not predicted.';
COMMENT ON COLUMN main.v_comparison.missing_inputs IS 'Inputs that a prediction would need and nobody stated. NULL: measured and not predicted.';
