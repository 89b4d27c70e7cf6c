-- A tenant in observe mode: rate, capacity and money gates are waived, and what they would have said is kept.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme'), ('priceless', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant, mode, queued_jobs_override) VALUES ('o', 'observe', 0), ('e', 'enforce', 0);
CALL pg_temp.fund('o', 200000);

CREATE FUNCTION pg_temp.would(operation_key text) RETURNS text LANGUAGE sql
    AS $$ SELECT concat_ws(' ', d.code, d.http_status, d.details ->> 'would_be') FROM admission.admit('o', $1, 'clip', '{}') d $$;

SELECT is(pg_temp.would('o1'), 'accepted 202', 'what enforce would accept has no would_be');
SELECT is(pg_temp.would('o2'), 'accepted 202', 'up to the limit');
SELECT is(pg_temp.would('o3'), 'accepted 202 queue_full', 'beyond it: accepted, and noted');
SELECT is(pg_temp.would('o4'), 'accepted 202 queue_full', 'however far');
SELECT is(pg_temp.money('o'), '200000 400000 -200000', 'the money is held all the same');
SELECT is(pg_temp.load('o'), '0 4', 'and the job counted');
UPDATE admission.tenant SET queued_jobs_override = NULL WHERE tenant = 'o';
SELECT is(pg_temp.would('o5'), 'accepted 202 insufficient_credits', 'no money');
UPDATE admission.tenant SET at_risk_micro = 1 WHERE tenant = 'o';
SELECT is(pg_temp.would('o6'), 'accepted 202 budget_exhausted', 'too much at risk');
UPDATE admission.tenant SET submit_rate = 0.001 WHERE tenant = 'o';
SELECT is(pg_temp.would('o7'), 'accepted 202 budget_exhausted', 'the first of its tokens');
SELECT is(pg_temp.would('o8'), 'accepted 202 rate_limited', 'and none');
SELECT is((SELECT would_be FROM admission.job_record WHERE job_id = pg_temp.job('o', 'o8')), 'rate_limited', 'kept with the job');
SELECT is((admission.preview('o', 'o9', 'clip', '{}')).details ->> 'would_be', 'rate_limited', 'preview says the same');
UPDATE admission.tenant SET submit_rate = NULL, at_risk_micro = NULL WHERE tenant = 'o';
UPDATE admission.policy SET global_outstanding_cap = 1;
SELECT is(pg_temp.would('o9'), 'accepted 202 global_capacity', 'the global cap');
SELECT is(pg_temp.would('o9'), 'already_accepted 200', 'a replay is a replay');
SELECT is((admission.admit('e', 'e1', 'clip', '{}')).code, 'global_capacity', 'which holds for the others');
UPDATE admission.policy SET global_outstanding_cap = NULL;

-- everything else is not waived
SELECT is((admission.admit('o', 'o9', 'clip', '{"other": 1}')).code, 'idempotency_conflict', 'a conflict');
SELECT is((admission.admit('o', 'x', 'none', '{}')).code, 'model_not_found', 'no such model');
SELECT is((admission.admit('o', 'x', 'priceless', '{}')).code, 'unsupported_configuration', 'no price');
SELECT is((admission.admit('o', '', 'clip', '{}')).code, 'invalid_request', 'a bad key');
UPDATE admission.tenant SET suspended_at = now() WHERE tenant = 'o';
SELECT is((admission.admit('o', 'x', 'clip', '{}')).code, 'tenant_suspended', 'suspended');
UPDATE admission.tenant SET suspended_at = NULL WHERE tenant = 'o';

-- its jobs live and pay as others do
SELECT is(pg_temp.claim(1, ARRAY['o']), 'o1', 'a claim');
SELECT is(pg_temp.settle('o', 'o1', 'completed', 100000), 'settled', 'a settlement');
SELECT is((admission.cancel('o', pg_temp.job('o', 'o2'))).code, 'canceled', 'a cancel');
SELECT is(pg_temp.money('o'), '100000 700000 -600000', 'the books are kept');
UPDATE admission.tenant SET mode = 'enforce' WHERE tenant = 'o';
SELECT is((admission.admit('o', 'y', 'clip', '{}')).code, 'insufficient_credits', 'enforce counts from the next call on');

SELECT is_empty('SELECT * FROM admission.verify()', 'a tenant in observe mode is no discrepancy');
SELECT * FROM finish();
ROLLBACK;
