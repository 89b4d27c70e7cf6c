-- Bad input: whatever a client can cause is a decision that names the field, the rest an error with its SQLSTATE, and nothing is lost.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant) VALUES ('a');
CALL pg_temp.fund('a', 1000000);
SELECT is((admission.admit('a', 'queued', 'clip', '{}')).code, 'accepted', 'a job that waits');
UPDATE admission.tenant SET concurrency_override = 3 WHERE tenant = 'a';
SELECT is((SELECT string_agg((admission.admit('a', k, 'clip', '{}', priority => 1::smallint)).code, ' ') FROM unnest('{running,ended}'::text[]) k), 'accepted accepted', 'two more');
SELECT is(pg_temp.claim(2), 'running ended', 'that run');
SELECT is(pg_temp.settle('a', 'ended', 'completed', 100000), 'settled', 'one to its end');
SELECT pg_temp.job('a', 'queued') AS queued, pg_temp.job('a', 'running') AS running, pg_temp.job('a', 'ended') AS ended \gset

CREATE FUNCTION pg_temp.everything() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws('; ', pg_temp.money('a'), pg_temp.load('a'), (SELECT count(*) FROM admission.job_record), (SELECT count(*) FROM admission.intake),
        (SELECT count(*) FROM admission.dispatch), (SELECT count(*) FROM admission.billing), (SELECT count(*) FROM admission.tenant),
        (SELECT string_agg(pg_temp.state('a', k), ' ') FROM unnest('{queued,running,ended}'::text[]) k), (SELECT max(lease_expires_at) FROM admission.processing)) $$;
SELECT pg_temp.everything() AS before \gset

-- what a call answers: its code and field, or an SQLSTATE
CREATE FUNCTION pg_temp.answer(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    EXECUTE 'SELECT string_agg(pg_temp.field(d), '', '') FROM admission.' || call || ' d' INTO answer;
    RETURN answer;
EXCEPTION WHEN OTHERS THEN
    RETURN SQLSTATE;
END $$;

-- admit and preview
SELECT is(pg_temp.answer(f || args), expected, f || args)
  FROM unnest(ARRAY['admit', 'preview']) f, (VALUES
    ($$(NULL, 'k', 'clip', '{}')$$, 'invalid_request tenant'),
    ($$('nobody', 'k', 'clip', '{}')$$, 'unknown_tenant'),
    ($$('A', 'k', 'clip', '{}')$$, 'unknown_tenant'),
    ($$(repeat('t', 3000), 'k', 'clip', '{}')$$, 'invalid_request tenant'),
    ($$('%', 'k', 'clip', '{}')$$, 'unknown_tenant'),
    ($$('a', '', 'clip', '{}')$$, 'invalid_request operation_key'),
    ($$('a', repeat('k', 3000), 'clip', '{}')$$, 'invalid_request operation_key'),
    ($$('a', repeat(U&'\+01F600', 64), 'clip', '{}')$$, 'invalid_request operation_key'),
    ($$('a', 'k', NULL, '{}')$$, 'invalid_request model'),
    ($$('a', 'k', 'none', '{}')$$, 'model_not_found'),
    ($$('a', 'k', 'CLIP', '{}')$$, 'model_not_found'),
    ($$('a', 'k', repeat('m', 3000), '{}')$$, 'invalid_request model'),
    ($$('a', 'k', '', '{}')$$, 'invalid_request model'),
    ($$('', 'k', 'clip', '{}')$$, 'invalid_request tenant'),
    ($$('a', 'k', U&'\+01F600', '{}')$$, 'model_not_found'),
    ($$('a', 'k', 'clip', NULL)$$, 'invalid_request request'),
    ($$('a', 'k', 'clip', 'null')$$, 'invalid_request request'),
    ($$('a', 'k', 'clip', '[]')$$, 'invalid_request request'),
    ($$('a', 'k', 'clip', '"x"')$$, 'invalid_request request'),
    ($$('a', 'k', 'clip', '1')$$, 'invalid_request request'),
    ($$('a', 'k', 'clip', 'true')$$, 'invalid_request request'),
    ($$('a', 'k', 'clip', '{')$$, '22P02'),
    ($$('a', 'k', 'clip', '{"a": "\u0000"}')$$, '22P05'),
    ($$('a', 'k', 'clip', '{}', '[]')$$, 'invalid_request context'),
    ($$('a', 'k', 'clip', '{}', '7')$$, 'invalid_request context'),
    ($$('a', 'k', 'clip', '{}', 'null')$$, 'invalid_request context'),
    ($$('a', 'k', 'clip', '{}', start_within => '0 s')$$, 'invalid_request start_within'),
    ($$('a', 'k', 'clip', '{}', start_within => '-1 day')$$, 'invalid_request start_within'),
    ($$('a', 'k', 'clip', '{}', start_within => '1 month -40 days')$$, 'invalid_request start_within'),
    ($$('a', 'k', 'clip', '{}', start_within => '170000000 years')$$, 'invalid_request start_within'),
    ($$('a', 'k', 'clip', '{}', max_ahead => -1)$$, 'invalid_request max_ahead'),
    ($$('a', 'k', 'clip', '{}', max_ahead => -2147483648)$$, 'invalid_request max_ahead'),
    ($$('a', 'k', 'clip', '{}', max_cost_micro => -1)$$, 'invalid_request max_cost_micro'),
    ($$('a', 'k', 'clip', '{}', max_cost_micro => -9223372036854775808)$$, 'invalid_request max_cost_micro')) x(args, expected);
SELECT is(pg_temp.answer($$admit('a', NULL, 'clip', '{}')$$), 'invalid_request operation_key', 'admit without a key');
SELECT is(pg_temp.answer($$preview('a', NULL, 'clip', '{}')$$), 'preview', 'preview without a key');
SELECT is(pg_temp.answer($$preview('a', 'k', 'clip', '{}', NULL, NULL, NULL, NULL, NULL)$$), 'preview', 'the optional arguments may be null');
SELECT is(pg_temp.answer($$preview('a', 'k', 'clip', '{}', '{}', '-32768'::smallint, '1 microsecond', 2147483647, 9223372036854775807)$$), 'preview', 'and as extreme as their types allow');
SELECT is(pg_temp.answer(format($$preview('a', 'k', 'clip', %L)$$, '{"x": ' || repeat('[', 3000) || repeat(']', 3000) || '}')), 'preview', 'a request nested 3000 deep');
SELECT is(pg_temp.answer(format($$preview('a', 'k', 'clip', jsonb_build_object('x', repeat('x', 10000000)))$$)), 'preview', 'a request of 10 MB');
SELECT is(pg_temp.answer($$preview('a', 'k', 'clip', '{"x": 1e100000, "y": -1e-16000}')$$), 'preview', 'numbers beyond any type but numeric');

-- cancel and cancel_queued
SELECT is(pg_temp.answer(call), expected, call) FROM (VALUES
    ($$cancel(NULL, NULL)$$, 'invalid_request tenant'),
    ($$cancel('a', NULL)$$, 'invalid_request job_id'),
    ($$cancel('a', 'x')$$, '22P02'),
    ($$cancel('nobody', gen_random_uuid())$$, 'unknown_tenant'),
    ($$cancel('a', gen_random_uuid())$$, 'not_found'),
    ($$cancel_queued(NULL)$$, 'invalid_request tenant'),
    ($$cancel_queued('nobody')$$, 'unknown_tenant'),
    ($$cancel_queued('a', '[]')$$, 'invalid_request context'),
    ($$cancel_queued('a', 'null')$$, 'invalid_request context'),
    ($$cancel_queued('a', '{"no": "such"}')$$, NULL)) x(call, expected);

-- workers' calls
SELECT is(pg_temp.answer(f || args), expected, f || args)
  FROM (VALUES ('begin_submission', ''), ('submitted', $$, 'p-1'$$), ('report_unknown', ''), ('heartbeat', ''), ('requeue', '')) w(f, more),
    LATERAL (VALUES (format('(NULL, 1%s)', more), 'invalid_request job_id'), (format('(gen_random_uuid(), 1%s)', more), 'not_found')) x(args, expected);
SELECT is(pg_temp.answer(format('%s(%L, %s%s)', f, :'running', attempt, more)), CASE WHEN attempt = 'NULL' THEN 'invalid_request attempt' ELSE 'stale_claim' END, format('%s: attempt %s', f, attempt))
  FROM (VALUES ('begin_submission', ''), ('submitted', $$, 'p-1'$$), ('report_unknown', ''), ('heartbeat', ''), ('requeue', '')) w(f, more), unnest(ARRAY['NULL', '0', '2', '-1', '2147483647', '-2147483648']) attempt;
SELECT is(pg_temp.answer(format(call, :'running')), expected, format(call, 'running')) FROM (VALUES
    ($$submitted('%s', 1, NULL)$$, 'invalid_request provider_job_id'),
    ($$submitted('%s', 1, '')$$, 'invalid_request provider_job_id'),
    ($$submitted('%s', 1, repeat('p', 3000))$$, 'invalid_request provider_job_id'),
    ($$heartbeat('%s', 1, '0 s')$$, 'invalid_request lease'),
    ($$heartbeat('%s', 1, '-1 s')$$, 'invalid_request lease'),
    ($$heartbeat('%s', 1, '170000000 years')$$, 'invalid_request lease'),
    ($$requeue('%s', 1, '-1 s')$$, 'invalid_request delay'),
    ($$requeue('%s', 1, '170000000 years')$$, 'invalid_request delay'),
    ($$settle('%s', NULL)$$, 'invalid_request outcome'),
    ($$settle('%s', 'done')$$, 'invalid_request outcome'),
    ($$settle('%s', 'canceled')$$, 'invalid_request outcome'),
    ($$settle('%s', 'completed', -1)$$, 'invalid_request actual_micro'),
    ($$settle('%s', 'completed', -9223372036854775808)$$, 'invalid_request actual_micro'),
    ($$settle('%s', 'completed', 1, attempt => 0)$$, 'stale_claim'),
    ($$settle('%s', 'completed', 1, attempt => 7)$$, 'stale_claim'),
    ($$settle('%s', 'completed', 1, result => '[]')$$, 'invalid_request result'),
    ($$settle('%s', 'completed', 1, result => '"x"')$$, 'invalid_request result'),
    ($$settle('%s', 'completed', 1, provider_job_id => repeat('p', 3000))$$, 'invalid_request provider_job_id')) x(call, expected);
SELECT is(pg_temp.answer(call), expected, call) FROM (VALUES
    ($$settle(NULL, 'completed')$$, 'invalid_request job_id'),
    ($$settle(NULL, 'completed', provider_job_id => 'nobody''s')$$, 'not_found'),
    ($$settle(gen_random_uuid(), 'completed')$$, 'not_found'),
    ($$settle_many(NULL)$$, 'invalid_request items'),
    ($$settle_many('7')$$, 'invalid_request items'),
    ($$settle_many('[null]')$$, 'invalid_request items')) x(call, expected);
SELECT throws_ok(call, '22023', NULL, call) FROM unnest(ARRAY[
    'SELECT admission.claim_next(''w'', 0)', 'SELECT admission.claim_next(''w'', -2147483648)',
    'SELECT admission.claim_next(''w'', lease => ''0'')', 'SELECT admission.claim_next(''w'', lease => ''-1 month'')', 'SELECT admission.claim_next(''w'', lease => ''170000000 years'')',
    'SELECT admission.claim_next(''w'', stage => ''x'')',
    'SELECT admission.expire(0)', 'SELECT admission.expire(-1)']) call;

-- operators' calls
SELECT is(pg_temp.answer(call), expected, call) FROM (VALUES
    ($$create_tenant(NULL)$$, 'invalid_request tenant'),
    ($$create_tenant('')$$, 'invalid_request tenant'),
    ($$create_tenant(repeat('t', 256))$$, 'invalid_request tenant'),
    ($$create_tenant('a')$$, 'already_recorded'),
    ($$top_up(NULL, 1, 'auto', 'x')$$, 'invalid_request tenant'),
    ($$top_up('nobody', 1, 'auto', 'x')$$, 'unknown_tenant'),
    ($$top_up('a', NULL, 'auto', 'x')$$, 'invalid_request amount_micro'),
    ($$top_up('a', 0, 'auto', 'x')$$, 'invalid_request amount_micro'),
    ($$top_up('a', -9223372036854775808, 'auto', 'x')$$, 'invalid_request amount_micro'),
    ($$top_up('a', 9223372036854775807, 'auto', 'x')$$, '22003'),
    ($$top_up('a', 1, NULL, 'x')$$, 'invalid_request source'),
    ($$top_up('a', 1, '', 'x')$$, 'invalid_request source'),
    ($$top_up('a', 1, 'plan', 'x')$$, 'invalid_request source'),
    ($$top_up('a', 1, 'auto', NULL)$$, 'invalid_request reference'),
    ($$top_up('a', 1, 'auto', '')$$, 'invalid_request reference'),
    ($$top_up('a', 1, 'auto', repeat('r', 3000))$$, 'invalid_request reference'),
    ($$grant_credit('a', 1, NULL, 'x')$$, 'invalid_request kind'),
    ($$grant_credit('a', 1, 'gift', 'x')$$, 'invalid_request kind'),
    ($$grant_credit('a', -1, 'grant', 'x')$$, 'invalid_request amount_micro'),
    ($$grant_credit(NULL, 1, 'grant', 'x')$$, 'invalid_request tenant'),
    ($$grant_credit('a', 1, 'grant', NULL)$$, 'invalid_request reference'),
    ($$refund(NULL, 1, 'x')$$, 'invalid_request job_id'),
    ($$refund(gen_random_uuid(), 1, 'x')$$, 'not_found'),
    ($$reverse_top_up(NULL, 1, 'x')$$, 'invalid_request top_up_reference'),
    ($$reverse_top_up('none', 1, 'x')$$, 'not_found'),
    ($$reverse_top_up('none', NULL, 'x')$$, 'invalid_request amount_micro'),
    ($$reverse_top_up('none', 1, NULL)$$, 'invalid_request reference'),
    ($$adjust(NULL, 1, 'x')$$, 'invalid_request tenant'),
    ($$adjust('nobody', 1, 'x')$$, 'unknown_tenant'),
    ($$adjust('a', NULL, 'x')$$, 'invalid_request amount_micro'),
    ($$adjust('a', 9223372036854775807, 'x')$$, '22003'),
    ($$adjust('a', 1, NULL)$$, 'invalid_request reference'),
    ($$adjust('a', 1, repeat(U&'\+01F600', 1000))$$, 'invalid_request reference')) x(call, expected);
SELECT is(pg_temp.answer(format($$refund('%s', %s, 'x')$$, :'ended', amount)), 'invalid_request amount_micro', 'refund of ' || amount) FROM unnest(ARRAY['NULL', '0', '-1', '-9223372036854775808']) amount;

-- the configuration refuses nonsense
SELECT throws_ok(statement, state, NULL, statement) FROM (VALUES
    ($$INSERT INTO admission.tenant (tenant) VALUES ('')$$, '23514'),
    ($$INSERT INTO admission.tenant (tenant) VALUES (NULL)$$, '23502'),
    ($$INSERT INTO admission.tenant (tenant) VALUES (repeat('t', 256))$$, '23514'),
    ($$INSERT INTO admission.tenant (tenant) VALUES ('a')$$, '23505'),
    ($$UPDATE admission.tenant SET mode = 'off'$$, '23514'),
    ($$UPDATE admission.tenant SET concurrency_override = -1$$, '23514'),
    ($$UPDATE admission.tenant SET queued_jobs_override = -1$$, '23514'),
    ($$UPDATE admission.tenant SET weight = 0$$, '23514'),
    ($$UPDATE admission.tenant SET overdraft_micro = -1$$, '23514'),
    ($$UPDATE admission.tenant SET at_risk_micro = -1$$, '23514'),
    ($$UPDATE admission.policy SET default_lease = '0'$$, '23514'),
    ($$UPDATE admission.policy SET max_attempts = 0$$, '23514'),
    ($$UPDATE admission.policy SET credit_micro = 0$$, '23514'),
    ($$UPDATE admission.policy SET late_completion = 'ignore'$$, '23514'),
    ($$UPDATE admission.policy SET operation_key_max_length = 0$$, '23514'),
    ($$UPDATE admission.policy SET queue_factor = -1$$, '23514'),
    ($$UPDATE admission.policy SET wave_fraction = 2$$, '23514'),
    ($$UPDATE admission.policy SET default_start_within = '-1 s'$$, '23514'),
    ($$INSERT INTO admission.model (model, provider) VALUES ('', 'p')$$, '23514'),
    ($$INSERT INTO admission.model (model) VALUES ('m')$$, '23502'),
    ($$UPDATE admission.model SET max_attempts = 0$$, '23514'),
    ($$INSERT INTO admission.model_access VALUES ('clip', 'nobody')$$, '23503'),
    ($$SET LOCAL admission.test_clock = 'noon'$$, '22023'),
    ($$SET LOCAL admission.test_clock = 'infinity'$$, '22023'),
    ($$SET LOCAL admission.no_such_setting = 1$$, '42602')) x(statement, state);

SELECT is(pg_temp.everything(), :'before', 'nothing of all this changed anything');
SELECT is((admission.admit('a', 'k', 'clip', '{"x": 1e100000, "y": "😀", "z": -1e-16000}', NULL, NULL)).code, 'accepted', 'good input still does');
SELECT is(pg_temp.claim(5), 'queued k', 'claims go on');
SELECT is((admission.begin_submission(:'running', 1)).code, 'submission_started', 'submissions');
SELECT is((admission.submitted(:'running', 1, '😀')).code, 'submitted', 'with any id');
SELECT is(pg_temp.settle('a', 'k', 'completed'), 'settled', 'settlements');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
