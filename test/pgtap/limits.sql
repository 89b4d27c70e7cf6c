-- generation_limits: what a tenant may have, and what is left of it.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100);
INSERT INTO admission.tenant (tenant, plan_id) VALUES ('l', 'studio'), ('m', NULL);
CALL pg_temp.fund('l', 1000000);

-- source, purchased, limit, queued limit, accepted limit, active, queued, remaining, wave, budget
CREATE FUNCTION pg_temp.limits(l admission.generation_limits) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', l.limit_source, l.purchased_concurrency_limit, l.concurrency_limit, l.queued_jobs_limit, l.accepted_generation_jobs_limit,
        l.active_generation_jobs, l.queued_generation_jobs, l.queue_capacity_remaining, l.wave_size_hint, l.new_job_budget) $$;
CREATE FUNCTION pg_temp.limits(tenant text) RETURNS text LANGUAGE sql AS $$ SELECT pg_temp.limits(admission.generation_limits($1)) $$;

SELECT is((admission.generation_limits('l')).plan_id, 'studio', 'the plan is shown');
SELECT is(pg_temp.limits('l'), 'plan 2 2 10 12 0 0 12 9 2', 'and gates nothing');
SELECT is(admission.generation_limits('nobody'), NULL::admission.generation_limits, 'an unknown tenant has none');
SELECT is(admission.generation_limits(NULL), NULL::admission.generation_limits, 'nor has null');

-- the example: limits of 100 and 500 and an idle tenant give 600 and 450
UPDATE admission.tenant SET concurrency_override = 100, override_reason = 'launch' WHERE tenant = 'l';
SELECT is(pg_temp.limits('l'), 'admin_override 2 100 500 600 0 0 600 450 100', '100 and 500: 600 and 450');

-- overrides
UPDATE admission.tenant SET concurrency_override = 1 WHERE tenant = 'l';
SELECT is(pg_temp.limits('l'), 'plan 2 2 10 12 0 0 12 9 2', 'an override below the purchased tier changes nothing');
UPDATE admission.tenant SET concurrency_override = 4, queued_jobs_override = 0 WHERE tenant = 'l';
SELECT is(pg_temp.limits('l'), 'admin_override 2 4 0 4 0 0 4 3 4', 'a queue of none');
UPDATE admission.tenant SET override_expires_at = '2026-03-01 13:00:00+00' WHERE tenant = 'l';
SET LOCAL admission.test_clock = '2026-03-01 12:59:59.999999+00';
SELECT is(pg_temp.limits('l'), 'admin_override 2 4 0 4 0 0 4 3 4', 'until it expires');
SET LOCAL admission.test_clock = '2026-03-01 13:00:00+00';
SELECT is((admission.generation_limits('l')).concurrency_limit, 2, 'then the tier counts');
SELECT is((admission.generation_limits('l')).limit_source, 'plan', 'and is named');
UPDATE admission.tenant SET concurrency_override = NULL, queued_jobs_override = NULL, override_expires_at = NULL WHERE tenant = 'l';

-- the queue's size
UPDATE admission.policy SET queue_factor = 1;
SELECT is(pg_temp.limits('l'), 'plan 2 2 3 5 0 0 5 3 2', 'queue_minimum');
UPDATE admission.policy SET queue_factor = 0, queue_minimum = 0;
SELECT is(pg_temp.limits('l'), 'plan 2 2 0 2 0 0 2 1 2', 'no queue at all');
UPDATE admission.policy SET queue_factor = 5, queue_minimum = 3;

-- used up, step by step; a decision shows the state after it
SELECT is(pg_temp.limits((admission.admit('l', 'l1', 'clip', '{}')).limits), 'plan 2 2 10 12 0 1 11 8 1', 'after one');
SELECT is(pg_temp.limits((admission.admit('l', 'l2', 'clip', '{}')).limits), 'plan 2 2 10 12 0 2 10 7 0', 'after two');
SELECT is(pg_temp.limits((admission.preview('l', 'l3', 'clip', '{}')).limits), 'plan 2 2 10 12 0 3 9 6 0', 'preview shows it too');
SELECT is(pg_temp.limits('l'), 'plan 2 2 10 12 0 2 10 7 0', 'and changes nothing');
SELECT is(pg_temp.claim(1), 'l1', 'one starts');
SELECT is(pg_temp.limits('l'), 'plan 2 2 10 12 1 1 10 7 0', 'active and queued');
SELECT is(pg_temp.settle('l', 'l1', 'completed', 100), 'settled', 'and ends');
SELECT is(pg_temp.limits('l'), 'plan 2 2 10 12 0 1 11 8 1', 'room again');
SELECT is(pg_temp.limits((admission.cancel('l', pg_temp.job('l', 'l2'))).limits), 'plan 2 2 10 12 0 0 12 9 2', 'a cancel shows the state after it');
SELECT is((SELECT string_agg(DISTINCT (admission.admit('l', 'f' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 12) i), 'accepted', 'twelve fill it');
SELECT is(pg_temp.limits('l'), 'plan 2 2 10 12 0 12 0 0 0', 'full');
SELECT is(pg_temp.limits((admission.admit('l', 'f13', 'clip', '{}')).limits), 'plan 2 2 10 12 0 12 0 0 0', 'a refusal shows it');
UPDATE admission.policy SET queue_factor = 0, queue_minimum = 0;
SELECT is(pg_temp.limits('l'), 'plan 2 2 0 2 0 12 0 0 0', 'never below zero');
UPDATE admission.policy SET queue_factor = 10000, wave_fraction = 0.5;
UPDATE admission.tenant SET concurrency_override = 1000000 WHERE tenant = 'm';
SELECT ok(pg_temp.attempt($$(admission.generation_limits('m')).queued_jobs_limit > 0$$) IN ('true', '22003'), 'settings beyond integer do not wrap');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
