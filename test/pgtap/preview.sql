-- preview answers what admit would answer, in every state, and writes nothing.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme'), ('film', 'acme'), ('bare', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity, max_quantity, hold) VALUES ('film', 'second', 10000, 'seconds', 5, 10, 'ceiling');
INSERT INTO admission.tenant (tenant, queued_jobs_override) VALUES ('p', 0), ('q', NULL);

-- what varies between two answers: the name of the acceptance, its job, and the jitter of an estimate
CREATE FUNCTION pg_temp.gist(d admission.decision) RETURNS jsonb LANGUAGE sql AS $$
    SELECT to_jsonb(d) || jsonb_build_object(
               'code', replace(d.code, 'preview', 'accepted'),
               'http_status', CASE WHEN d.code IN ('preview', 'accepted') THEN 0 ELSE d.http_status END,
               'message', CASE WHEN d.code IN ('preview', 'accepted') THEN '' ELSE d.message END,
               'job_id', CASE WHEN d.code IN ('preview', 'accepted') THEN NULL ELSE d.job_id END,
               'retry_after', CASE WHEN d.code IN ('rate_limited', 'provider_capacity_exceeded') THEN d.retry_after::text ELSE (d.retry_after IS NOT NULL)::text END,
               'retry_after_seconds', CASE WHEN d.code IN ('rate_limited', 'provider_capacity_exceeded') THEN d.retry_after_seconds END,
               'details', CASE WHEN d.details ? 'failed' THEN d.details || jsonb_build_object('failed',
                   (SELECT jsonb_agg(f - '{changes_at,retry_after}'::text[]) FROM jsonb_array_elements(d.details -> 'failed') f)) ELSE d.details END) $$;

CREATE FUNCTION pg_temp.everything() RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws('; ', (SELECT count(*) FROM admission.job_record), (SELECT count(*) FROM admission.intake), (SELECT count(*) FROM admission.dispatch),
        (SELECT count(*) FROM admission.rejection), (SELECT count(*) FROM admission.ring), (SELECT count(*) FROM admission.lane), (SELECT count(*) FROM admission.deadline),
        (SELECT sum(tokens) FROM admission.pool_stripe), (SELECT count(*) FROM admission.pool_stripe)) $$;

-- previews in a read-only subtransaction, then admits; the code if both agree, else both answers
CREATE FUNCTION pg_temp.both(tenant text, operation_key text, model text, request jsonb DEFAULT '{}', context jsonb DEFAULT '{}', priority integer DEFAULT 0,
    start_within interval DEFAULT NULL, max_ahead integer DEFAULT NULL, max_cost_micro bigint DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    before text := pg_temp.everything();
    foreseen admission.decision;
    answer admission.decision;
BEGIN
    BEGIN
        PERFORM set_config('transaction_read_only', 'on', true);
        foreseen := admission.preview(tenant, operation_key, model, request, context, priority::smallint, start_within, max_ahead, max_cost_micro);
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    IF pg_temp.everything() <> before THEN
        RETURN 'preview wrote something';
    END IF;
    answer := admission.admit(tenant, operation_key, model, request, context, priority::smallint, start_within, max_ahead, max_cost_micro);
    IF pg_temp.gist(foreseen) IS DISTINCT FROM pg_temp.gist(answer) THEN
        RETURN pg_temp.gist(foreseen)::text || ' <> ' || pg_temp.gist(answer)::text;
    END IF;
    RETURN CASE foreseen.code WHEN 'preview' THEN answer.code || ' as previewed' ELSE foreseen.code END;
END $$;

SELECT is(pg_temp.both(NULL, 'k', 'clip'), 'invalid_request', 'no tenant');
SELECT is(pg_temp.both('p', '', 'clip'), 'invalid_request', 'an empty key');
SELECT is(pg_temp.both('p', repeat('k', 3000), 'clip'), 'invalid_request', 'a long key');
SELECT is(pg_temp.both('p', 'k', NULL), 'invalid_request', 'no model');
SELECT is(pg_temp.both('p', 'k', 'clip', '[]'), 'invalid_request', 'a request that is no object');
SELECT is(pg_temp.both('p', 'k', 'clip', '{}', '[]'), 'invalid_request', 'a context that is no object');
SELECT is(pg_temp.both('p', 'k', 'clip', start_within => '0'), 'invalid_request', 'no time to start');
SELECT is(pg_temp.both('p', 'k', 'clip', max_ahead => -1), 'invalid_request', 'fewer than nobody ahead');
SELECT is(pg_temp.both('p', 'k', 'clip', max_cost_micro => -1), 'invalid_request', 'a negative maximum');
SELECT is(pg_temp.both('nobody', 'k', 'clip'), 'unknown_tenant', 'an unknown tenant');
SELECT is(pg_temp.both('p', 'k', 'nothing'), 'model_not_found', 'an unknown model');
SELECT is(pg_temp.both('p', 'k', 'bare'), 'unsupported_configuration', 'no price');
SELECT is(pg_temp.both('p', 'k', 'film', '{"seconds": "8"}'), 'invalid_request', 'a bad quantity');
SELECT is(pg_temp.both('p', 'k', 'film', '{"seconds": 11}'), 'unsupported_configuration', 'too much');
SELECT is(pg_temp.both('p', 'k', 'clip'), 'insufficient_credits', 'no money');
CALL pg_temp.fund('p', 1000000);
SELECT is(pg_temp.both('p', 'k', 'clip', max_cost_micro => 99999), 'cost_too_high', 'too dear');
SELECT is(pg_temp.both('p', 'k', 'film', '{"seconds": 4}', '{"customer": 1}', 3, '1 hour', 0, 40000), 'accepted as previewed', 'an acceptance: quote, reservation and limits agree');
SELECT is(pg_temp.both('p', 'k', 'film', '{"seconds": 4}'), 'already_accepted', 'a replay');
SELECT is(pg_temp.both('p', 'k', 'film', '{"seconds": 5}'), 'idempotency_conflict', 'a conflict');
SELECT is(pg_temp.both('p', 'k2', 'clip', priority => 9, max_ahead => 0), 'accepted as previewed', 'nobody ahead of the highest priority');
SELECT is(pg_temp.both('p', 'k3', 'clip'), 'queue_full', 'full');
UPDATE admission.policy SET global_outstanding_cap = 2;
SELECT is(pg_temp.both('p', 'k3', 'clip'), 'global_capacity', 'all full');
UPDATE admission.policy SET global_outstanding_cap = 3;
UPDATE admission.tenant SET queued_jobs_override = NULL WHERE tenant = 'p';
SELECT is(pg_temp.both('p', 'k3', 'clip', max_ahead => 1), 'queue_too_long', 'two ahead');
UPDATE admission.tenant SET at_risk_micro = 250000 WHERE tenant = 'p';
SELECT is(pg_temp.both('p', 'k3', 'clip'), 'budget_exhausted', 'too much at risk');
UPDATE admission.tenant SET at_risk_micro = NULL, submit_rate = 0.1, submit_burst = 1 WHERE tenant = 'p';
SELECT is(pg_temp.both('p', 'k3', 'clip'), 'accepted as previewed', 'the last place under the cap, the first token');
SELECT is(pg_temp.both('p', 'k4', 'clip'), 'rate_limited', 'no token');
UPDATE admission.tenant SET submit_rate = NULL WHERE tenant = 'p';
SELECT is(pg_temp.both('p', 'k4', 'clip'), 'global_capacity', 'no place');
UPDATE admission.policy SET global_outstanding_cap = NULL;
UPDATE admission.model SET paused_until = admission.clock() + '10 seconds' WHERE model = 'clip';
SELECT is(pg_temp.both('p', 'k4', 'clip'), 'provider_capacity_exceeded', 'paused');
UPDATE admission.model SET queue_while_paused = true WHERE model = 'clip';
SELECT is(pg_temp.both('p', 'k4', 'clip'), 'accepted as previewed', 'queued while paused');
UPDATE admission.model SET enabled = false WHERE model = 'film';
SELECT is(pg_temp.both('p', 'k5', 'film'), 'model_not_found', 'disabled');
UPDATE admission.model SET enabled = true, open_to_all = false WHERE model = 'film';
SELECT is(pg_temp.both('p', 'k5', 'film'), 'model_not_found', 'closed');
UPDATE admission.tenant SET mode = 'observe', at_risk_micro = 0 WHERE tenant = 'p';
SELECT is(pg_temp.both('p', 'k5', 'clip'), 'accepted as previewed', 'observe mode, with what would have been');
UPDATE admission.tenant SET suspended_at = now() WHERE tenant = 'p';
SELECT is(pg_temp.both('p', 'k6', 'clip'), 'tenant_suspended', 'suspended');
UPDATE admission.model SET open_to_all = true WHERE model = 'film';
UPDATE admission.price SET max_quantity = 9223372036854775807, hold = 'quote' WHERE model = 'film';
SELECT throws_ok($$SELECT admission.preview('q', NULL, 'film', '{"seconds": 922337203685478}')$$, '22003', NULL, 'preview fails where admit does');
SELECT throws_ok($$SELECT admission.admit('q', 'k', 'film', '{"seconds": 922337203685478}')$$, '22003', NULL, 'admit');

-- a preview needs no key, looks the key up if it has one, and may be asked in a read-only transaction, where admit may not
CALL pg_temp.fund('q', 1000000);
SELECT is(pg_temp.brief(admission.preview('q', NULL, 'clip', '{}')), 'preview 200', 'without a key');
SELECT is((admission.preview('q', NULL, 'clip', '{}')).details -> 'quote', '{"micro": 100000, "usd": 0.1, "credits": 10, "unit": "generation", "quantity": 1}', 'with a quote');
SELECT is((admission.preview('q', NULL, 'clip', '{}')).job_id, NULL::uuid, 'and no job');
SELECT is((admission.preview('p', NULL, 'clip', '{}')).code, 'tenant_suspended', 'the gates are the same');
CREATE FUNCTION pg_temp.read_only(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
BEGIN
    BEGIN
        PERFORM set_config('transaction_read_only', 'on', true);
        answer := pg_temp.attempt(expression);
    EXCEPTION WHEN division_by_zero THEN NULL;
    END;
    RETURN answer;
END $$;
SELECT is(pg_temp.read_only($$(admission.preview('q', 'k', 'clip', '{}')).code$$), 'preview', 'read-only: preview');
SELECT is(pg_temp.read_only($$(admission.admit('q', 'k', 'clip', '{}')).code$$), '25006', 'read-only: admit is an error');
SELECT is(pg_temp.read_only($$(admission.admit('q', 'k', 'nothing', '{}')).code$$), '25006', 'read-only: even where it would be refused');
SELECT is(pg_temp.read_only($$(admission.generation_limits('q')).concurrency_limit$$), '2', 'read-only: generation_limits');
SELECT is(pg_temp.read_only($$(admission.balance('q')).balance_micro$$), '1000000', 'read-only: balance');
SELECT is(pg_temp.read_only($$(admission.status('q', gen_random_uuid())).status$$), NULL, 'read-only: status');
SELECT is(pg_temp.read_only($$SELECT count(*) FROM admission.verify()$$), '0', 'read-only: verify');
SELECT is(pg_temp.read_only($$(admission.cancel('p', pg_temp.job('p', 'k'))).code$$), '25006', 'read-only: cancel');
SELECT is(pg_temp.read_only($$SELECT count(*) FROM admission.claim_next('w')$$), '25006', 'read-only: claim_next');
SELECT is(pg_temp.read_only($$(admission.settle(pg_temp.job('p', 'k'), 'completed')).code$$), '25006', 'read-only: settle');
SELECT is(pg_temp.read_only($$(admission.top_up('p', 1, 'auto', 'x')).code$$), '25006', 'read-only: top_up');
SELECT is(pg_temp.read_only($$(admission.expire()).expired$$), '25006', 'read-only: expire');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
