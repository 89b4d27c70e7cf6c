-- Every gate in its order: one request that fails them all, and the faults removed one by one.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.model (model, provider, enabled, open_to_all, paused_until) VALUES ('film', 'acme', false, false, '2026-03-01 12:01:30+00');

INSERT INTO admission.tenant (tenant, queued_jobs_override, submit_rate, submit_burst, at_risk_micro) VALUES ('w', 0, 0.5, 2, 250000);
CALL pg_temp.fund('w', 200000);
SELECT is(pg_temp.brief(admission.admit('w', 'k1', 'clip', '{"n": 1}')), 'accepted 202', 'the first job');
SELECT is(pg_temp.brief(admission.admit('w', 'k2', 'clip', '{"n": 2}')), 'accepted 202', 'the second job takes the last place, coin and token');
UPDATE admission.policy SET global_outstanding_cap = 2;
UPDATE admission.tenant SET suspended_at = now() WHERE tenant = 'w';

-- what the tenant asks, with everything wrong, and what it would have to ask for to be let through
CREATE FUNCTION pg_temp.ask(tenant text DEFAULT 'w', operation_key text DEFAULT 'k1', request jsonb DEFAULT '{"n": 3}', model text DEFAULT 'film', max_cost_micro bigint DEFAULT 1)
    RETURNS admission.decision LANGUAGE sql
    AS $$ SELECT admission.admit($1, $2, $4, $3, max_ahead => 0, max_cost_micro => $5) $$;

SELECT is(pg_temp.brief(pg_temp.ask('nobody', request => '[]')), 'invalid_request 400 same', 'gate 1: malformed arguments');
SELECT is(pg_temp.field(pg_temp.ask('nobody', request => '[]')), 'invalid_request request', 'the field is named');
SELECT is(pg_temp.brief(pg_temp.ask('nobody')), 'unknown_tenant 401', 'gate 2: no such tenant');
SELECT is((pg_temp.ask('nobody')).limits, NULL::admission.generation_limits, 'an unknown tenant has no limits');
SELECT is(pg_temp.brief(pg_temp.ask()), 'tenant_suspended 403', 'gate 3: the tenant is suspended');
SELECT is(pg_temp.brief(pg_temp.ask(request => '{"n": 1}', model => 'clip')), 'tenant_suspended 403', 'a replay does not get past it either');

UPDATE admission.tenant SET suspended_at = NULL WHERE tenant = 'w';
SELECT is(pg_temp.brief(pg_temp.ask(request => '{"n": 1}', model => 'clip')), 'already_accepted 200', 'gate 4: a replay, though all is full');
SELECT is(pg_temp.brief(pg_temp.ask()), 'idempotency_conflict 409 new', 'gate 5: the key is bound to another request');
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3')), 'rate_limited 429 retry same', 'gate 6: no token');
SELECT is((pg_temp.ask(operation_key => 'k3')).retry_after, '2 seconds'::interval, 'the next token comes in exactly 2 s');
SELECT is((pg_temp.ask(operation_key => 'k3')).retry_after_seconds, 2, 'retry_after_seconds');

UPDATE admission.tenant SET submit_rate = NULL, submit_burst = NULL WHERE tenant = 'w';
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3', model => 'no such model')), 'model_not_found 404', 'gate 7: unknown model');
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3')), 'model_not_found 404', 'gate 7: disabled model');
UPDATE admission.model SET enabled = true WHERE model = 'film';
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3')), 'model_not_found 404', 'gate 7: not open to this tenant');
INSERT INTO admission.model_access VALUES ('film', 'w');
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3')), 'unsupported_configuration 400 same', 'gate 8: no price');
INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('film', '{"n": 4}', 7);
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3')), 'unsupported_configuration 400 same', 'gate 8: no price that matches');
INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('film', '{"n": 3}', 100000);
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3')), 'cost_too_high 402 same', 'gate 9: dearer than the caller allows');
SELECT is(pg_temp.brief(pg_temp.ask(operation_key => 'k3', max_cost_micro => 99999)), 'cost_too_high 402 same', 'gate 9: by one micro-USD');

CREATE FUNCTION pg_temp.ask3() RETURNS admission.decision LANGUAGE sql
    AS $$ SELECT pg_temp.ask(operation_key => 'k3', max_cost_micro => 100000) $$;
SELECT is(pg_temp.brief(pg_temp.ask3()), 'provider_capacity_exceeded 503 retry same', 'gate 10: the model is paused');
SELECT is((pg_temp.ask3()).retry_after, '90 seconds'::interval, 'retry_after is the rest of the pause');
SELECT is((pg_temp.ask3()).retry_after_seconds, 90, 'in seconds too');

UPDATE admission.model SET paused_until = admission.clock() WHERE model = 'film';
SELECT is(pg_temp.brief(pg_temp.ask3()), 'global_capacity 429 retry same', 'gate 11: a pause that ends now is over; the global cap is reached');
SELECT is(pg_temp.failed(pg_temp.ask3()), 'global_capacity queue_full queue_too_long budget_exhausted insufficient_credits',
    'details.failed lists every capacity and money gate that fails');
SELECT is(pg_temp.failed(pg_temp.ask3(), 'global_capacity') -> 'limit', '2', 'global_capacity: its limit');
SELECT is(pg_temp.failed(pg_temp.ask3(), 'queue_full') @> '{"limit": 2, "used": 2, "needed": 1}', true, 'queue_full: limit, used, needed');
SELECT is(pg_temp.failed(pg_temp.ask3(), 'queue_too_long') -> 'limit', '0', 'queue_too_long: its limit is max_ahead');
SELECT is(pg_temp.failed(pg_temp.ask3(), 'queue_too_long') -> 'used', '2', 'queue_too_long: two jobs before it');
SELECT is(pg_temp.failed(pg_temp.ask3(), 'budget_exhausted') @> '{"limit": 250000, "used": 200000, "needed": 100000}', true, 'budget_exhausted: limit, used, needed');
SELECT is(pg_temp.failed(pg_temp.ask3(), 'insufficient_credits') -> 'needed', '100000', 'insufficient_credits: what is needed');
SELECT cmp_ok((pg_temp.ask3()).retry_after, '>', '0 seconds'::interval, 'retry_after is never zero');
SELECT cmp_ok((pg_temp.ask3()).retry_after_seconds, '>=', 1, 'nor is it in seconds');

UPDATE admission.policy SET global_outstanding_cap = NULL;
SELECT is(pg_temp.brief(pg_temp.ask3()), 'queue_full 429 retry same', 'gate 12: outstanding has reached the accepted limit');
SELECT is(pg_temp.failed(pg_temp.ask3()), 'queue_full queue_too_long budget_exhausted insufficient_credits', 'failed without the first');
SELECT cmp_ok((pg_temp.ask3()).retry_after, '>', '0 seconds'::interval, 'retry_after is never zero');
SELECT is((pg_temp.ask3()).limits, ROW(NULL, 'plan', 2, 2, 0, 2, 0, 2, 0, 0, 0)::admission.generation_limits, 'limits: nothing left');

UPDATE admission.tenant SET queued_jobs_override = 2 WHERE tenant = 'w';
SELECT is(pg_temp.brief(pg_temp.ask3()), 'queue_too_long 429 retry same', 'gate 13: more jobs before it than the caller allows');
CREATE OR REPLACE FUNCTION pg_temp.ask3() RETURNS admission.decision LANGUAGE sql
    AS $$ SELECT admission.admit('w', 'k3', 'film', '{"n": 3}', max_ahead => 2, max_cost_micro => 100000) $$;
SELECT is(pg_temp.brief(pg_temp.ask3()), 'budget_exhausted 402 same', 'gate 14: too much at risk');
SELECT is((pg_temp.ask3()).details @> '{"limit": 250000, "held": 200000}', true, 'its details name the limit and what is held');
UPDATE admission.tenant SET at_risk_micro = 300000 WHERE tenant = 'w';
SELECT is(pg_temp.brief(pg_temp.ask3()), 'insufficient_credits 402 new', 'gate 15: at_risk_micro may be reached exactly; no money');
SELECT is((pg_temp.ask3()).details - '{failed,quote}'::text[],
    '{"required_micro": 100000, "available_micro": 0, "required_usd": 0.1, "available_usd": 0, "required_credits": 10, "available_credits": 0}',
    'in micro-USD, USD and credits');
SELECT is(pg_temp.failed(pg_temp.ask3()), 'insufficient_credits', 'the only one left');
CALL pg_temp.fund('w', 99999);
SELECT is(pg_temp.brief(pg_temp.ask3()), 'insufficient_credits 402 new', 'one micro-USD short');
CALL pg_temp.fund('w', 1);
SELECT is(pg_temp.load('w'), '0 2', 'all these refusals left no job');
SELECT is(pg_temp.money('w'), '300000 200000 100000', 'and took no money');

CREATE TEMP TABLE taken AS SELECT d.* FROM pg_temp.ask3() d;
SELECT is((SELECT concat_ws(' ', ok, code, http_status, retryable, retry_after, retry_after_seconds, retry_key, reserved_micro) FROM taken),
    't accepted 202 f 100000', 'gate 16: accepted');
SELECT is((SELECT details -> 'quote' FROM taken), '{"micro": 100000, "usd": 0.1, "credits": 10, "unit": "generation", "quantity": 1}', 'details.quote');
SELECT is((SELECT job_id FROM taken), pg_temp.job('w', 'k3'), 'job_id');
SELECT is((SELECT limits FROM taken), ROW(NULL, 'plan', 2, 2, 2, 4, 0, 3, 1, 0, 0)::admission.generation_limits, 'limits are the state after it');
SELECT isnt((SELECT message FROM taken), NULL, 'there is a message');

-- the pause, again
UPDATE admission.model SET paused_until = '2026-03-01 12:00:00.000001+00' WHERE model = 'film';
SELECT is((admission.admit('w', 'k4', 'film', '{"n": 3}')).retry_after_seconds, 1, 'a microsecond is rounded up to a second');
UPDATE admission.model SET queue_while_paused = true WHERE model = 'film';
CALL pg_temp.fund('w', 100000);
UPDATE admission.tenant SET at_risk_micro = NULL WHERE tenant = 'w';
SELECT is(pg_temp.brief(admission.admit('w', 'k4', 'film', '{"n": 3}')), 'accepted 202', 'queue_while_paused admits');

-- free jobs meet the count gates only
INSERT INTO admission.tenant (tenant, queued_jobs_override, at_risk_micro) VALUES ('free', 0, 0);
INSERT INTO admission.model (model, provider) VALUES ('gift', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('gift', 0);
SELECT is(pg_temp.brief(admission.admit('free', 'f1', 'gift', '{}')), 'accepted 202', 'a job that costs nothing needs no money');
SELECT is(pg_temp.brief(admission.admit('free', 'f2', 'gift', '{}', max_cost_micro => 0)), 'accepted 202', 'nor a budget');
SELECT is(pg_temp.failed(admission.admit('free', 'f3', 'gift', '{}')), 'queue_full', 'but a place');

-- the rejection log
SELECT is((SELECT count(*) FROM admission.rejection r JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'free'), 1::bigint, 'a refusal is logged');
SELECT is((SELECT r.code FROM admission.rejection r JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'free'), 'queue_full', 'with its code');
UPDATE admission.policy SET log_rejections = false;
SELECT is((admission.admit('free', 'f3', 'gift', '{}')).code, 'queue_full', 'refused again');
SELECT is((SELECT count(*) FROM admission.rejection r JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'free'), 1::bigint, 'log_rejections off: not logged');

-- what decision_code documents is what the decisions carry
SELECT results_eq($$
    SELECT code, ok, http_status, retryable, retry_key FROM admission.decision_code
     WHERE code IN ('invalid_request', 'unknown_tenant', 'tenant_suspended', 'already_accepted', 'idempotency_conflict', 'rate_limited', 'model_not_found',
        'unsupported_configuration', 'cost_too_high', 'provider_capacity_exceeded', 'global_capacity', 'queue_full', 'queue_too_long', 'budget_exhausted',
        'insufficient_credits', 'insufficient_funds', 'accepted', 'preview', 'canceled', 'already_canceled', 'job_generation_already_started', 'not_found',
        'submission_started', 'submitted', 'unknown_recorded', 'lease_extended', 'requeued', 'settled', 'already_settled', 'late_completion',
        'settlement_conflict', 'stale_claim', 'recorded', 'already_recorded', 'reference_conflict')
     ORDER BY code COLLATE "C"$$,
    $$VALUES ('accepted', true, 202, false, NULL::text),
        ('already_accepted', true, 200, false, NULL),
        ('already_canceled', true, 200, false, NULL),
        ('already_recorded', true, 200, false, NULL),
        ('already_settled', true, 200, false, NULL),
        ('budget_exhausted', false, 402, false, 'same'),
        ('canceled', true, 200, false, NULL),
        ('cost_too_high', false, 402, false, 'same'),
        ('global_capacity', false, 429, true, 'same'),
        ('idempotency_conflict', false, 409, false, 'new'),
        ('insufficient_credits', false, 402, false, 'new'),
        ('insufficient_funds', false, 402, false, 'new'),
        ('invalid_request', false, 400, false, 'same'),
        ('job_generation_already_started', false, 409, false, NULL),
        ('late_completion', true, 200, false, NULL),
        ('lease_extended', true, 200, false, NULL),
        ('model_not_found', false, 404, false, NULL),
        ('not_found', false, 404, false, NULL),
        ('preview', true, 200, false, NULL),
        ('provider_capacity_exceeded', false, 503, true, 'same'),
        ('queue_full', false, 429, true, 'same'),
        ('queue_too_long', false, 429, true, 'same'),
        ('rate_limited', false, 429, true, 'same'),
        ('recorded', true, 200, false, NULL),
        ('reference_conflict', false, 409, false, 'new'),
        ('requeued', true, 200, false, NULL),
        ('settled', true, 200, false, NULL),
        ('settlement_conflict', false, 409, false, NULL),
        ('stale_claim', false, 409, false, NULL),
        ('submission_started', true, 200, false, NULL),
        ('submitted', true, 200, false, NULL),
        ('tenant_suspended', false, 403, false, NULL),
        ('unknown_recorded', true, 200, false, NULL),
        ('unknown_tenant', false, 401, false, NULL),
        ('unsupported_configuration', false, 400, false, 'same')$$,
    'decision_code is the table of the design');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
