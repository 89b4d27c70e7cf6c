-- admit_many and settle_many: one call, one decision for each item, in order.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme'), ('film', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity, max_quantity) VALUES ('film', 'second', 10000, 'seconds', 5, 10);
INSERT INTO admission.tenant (tenant, queued_jobs_override) VALUES ('b', 3), ('c', NULL), ('d', NULL), ('e', NULL);
CALL pg_temp.fund('b', 1000000);
CALL pg_temp.fund('c', 250000);
CALL pg_temp.fund('d', 1000000);
CALL pg_temp.fund('e', 1000000);

CREATE FUNCTION pg_temp.item(operation_key text, model text DEFAULT 'clip', request jsonb DEFAULT '{}') RETURNS jsonb LANGUAGE sql
    AS $$ SELECT jsonb_build_object('operation_key', $1, 'model', $2, 'request', $3) $$;
CREATE FUNCTION pg_temp.many(tenant text, items jsonb, all_or_nothing boolean DEFAULT false) RETURNS text LANGUAGE sql
    AS $$ SELECT string_agg(concat_ws(' ', d.code, d.details ->> 'field'), ', ' ORDER BY d.ordinality) FROM admission.admit_many($1, $2, $3) WITH ORDINALITY d $$;

-- in order, each with the state after it
CREATE TEMP TABLE answers AS SELECT d.* FROM admission.admit_many('b', jsonb_build_array(
    pg_temp.item('k1') || '{"context": {"customer": 1}, "priority": 2, "start_within": "1 hour", "max_ahead": 0, "max_cost_micro": 100000}',
    pg_temp.item('k2', 'film', '{"seconds": 8}'), pg_temp.item('k1') || '{"context": {"customer": 1}}', pg_temp.item('k1', 'clip', '{"other": 1}'),
    pg_temp.item('k3', 'nothing'), pg_temp.item('k4', 'film', '{"seconds": 11}'), pg_temp.item('k5', 'film', '{"seconds": "x"}'),
    pg_temp.item('k6'), pg_temp.item('k7') || '{"max_ahead": 1}', pg_temp.item('k8'), pg_temp.item('k9'), pg_temp.item('k10'))) WITH ORDINALITY d;
SELECT results_eq('SELECT code, reserved_micro, (limits).queued_generation_jobs FROM answers ORDER BY ordinality', $$VALUES
    ('accepted', 100000::bigint, 1), ('accepted', 80000, 2), ('already_accepted', 100000, 2), ('idempotency_conflict', NULL, 2),
    ('model_not_found', NULL, 2), ('unsupported_configuration', NULL, 2), ('invalid_request', NULL, 2),
    ('accepted', 100000, 3), ('queue_too_long', NULL, 3), ('accepted', 100000, 4), ('accepted', 100000, 5), ('queue_full', NULL, 5)$$, 'each item meets what the ones before it left');
SELECT is((SELECT job_id FROM answers WHERE ordinality = 3), (SELECT job_id FROM answers WHERE ordinality = 1), 'a duplicate within the batch is the same job');
SELECT is((SELECT context || jsonb_build_object('priority', priority, 'start_within', start_by - created_at) FROM admission.job WHERE job_id = pg_temp.job('b', 'k1')),
    '{"customer": 1, "priority": 2, "start_within": "01:00:00"}', 'items have all arguments of admit');
SELECT is((SELECT count(*) FROM admission.intake i JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'b'), 1::bigint, 'one intake row in all');
SELECT is((SELECT jobs || ' ' || amount_micro FROM admission.intake i JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'b'), '5 480000', 'with its sums');
SELECT is(pg_temp.money('b'), '1000000 480000 520000', 'money held');
SELECT is((SELECT array_agg(job_no ORDER BY operation_key) FROM admission.job WHERE tenant = 'b'), '{1,2,3,4,5}'::bigint[], 'jobs are numbered without a gap');
SELECT is(pg_temp.claim(2, ARRAY['b']), 'k1 k2', 'and run as others do');

-- money runs out in the middle
SELECT is(pg_temp.many('c', (SELECT jsonb_agg(pg_temp.item('m' || i)) FROM generate_series(1, 4) i)), 'accepted, accepted, insufficient_credits, insufficient_credits', 'money for two and a half');
SELECT is(pg_temp.many('c', (SELECT jsonb_agg(pg_temp.item('m' || i, CASE i WHEN 3 THEN 'film' ELSE 'clip' END)) FROM generate_series(1, 4) i)),
    'already_accepted, already_accepted, accepted, insufficient_credits', 'again, with something cheaper');

-- all or nothing
SELECT is(split_part(pg_temp.many('d', (SELECT jsonb_agg(pg_temp.item('n' || i)) FROM generate_series(1, 11) i), true), ', ', 11), 'insufficient_credits', 'all or nothing: the eleventh fails');
SELECT is((SELECT count(*) FROM admission.job WHERE tenant = 'd'), 0::bigint, 'so nothing is written');
SELECT is(pg_temp.money('d'), '1000000 0 1000000', 'and nothing held');
SELECT is((SELECT count(*) FROM admission.intake i JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'd'), 0::bigint, 'and no intake row');
SELECT is((SELECT count(*) FROM admission.admit_many('d', (SELECT jsonb_agg(pg_temp.item('n' || i)) FROM generate_series(1, 11) i), true)), 11::bigint, 'one decision for each all the same');
SELECT is((SELECT count(*) FROM admission.admit_many('d', (SELECT jsonb_agg(pg_temp.item('n' || i)) FROM generate_series(1, 11) i), true) d WHERE d.code = 'accepted' AND d.job_id IS NOT NULL), 0::bigint, 'none of which promises a job');
SELECT is(pg_temp.many('d', (SELECT jsonb_agg(pg_temp.item('n' || i)) FROM generate_series(1, 10) i), true), 'accepted, accepted, accepted, accepted, accepted, accepted, accepted, accepted, accepted, accepted', 'ten fit');
SELECT is(pg_temp.many('d', (SELECT jsonb_agg(pg_temp.item('n' || i)) FROM generate_series(1, 10) i), true), 'already_accepted, already_accepted, already_accepted, already_accepted, already_accepted, already_accepted, already_accepted, already_accepted, already_accepted, already_accepted', 'a replay of all is no refusal');
SELECT is(pg_temp.many('e', jsonb_build_array(pg_temp.item('x'), pg_temp.item('x', 'clip', '{"y": 1}')), true) LIKE '%idempotency_conflict', true, 'a conflict within the batch');
SELECT is((SELECT count(*) FROM admission.job WHERE tenant = 'e'), 0::bigint, 'is a refusal');

-- bad batches
SELECT is(pg_temp.many('e', '[]'), NULL, 'an empty batch: no decisions');
SELECT is(pg_temp.many('e', '{}'), 'invalid_request items', 'no array');
SELECT is(pg_temp.many('e', NULL), 'invalid_request items', 'null');
SELECT is(pg_temp.many('e', 'null'), 'invalid_request items', 'null of JSON');
SELECT is(pg_temp.many('nobody', jsonb_build_array(pg_temp.item('x'))), 'unknown_tenant', 'an unknown tenant');
SELECT is(pg_temp.many(NULL, jsonb_build_array(pg_temp.item('x'))), 'invalid_request tenant', 'no tenant');
SELECT is(pg_temp.many('e', jsonb_build_array(pg_temp.item('good'), i)), e, format('%s: %s', i, e))
  FROM (VALUES ('7'::jsonb, 'accepted, invalid_request items'), ('null', 'already_accepted, invalid_request items'), ('[]', 'already_accepted, invalid_request items'),
    ('{"model": "clip", "request": {}}', 'already_accepted, invalid_request operation_key'), ('{"operation_key": 7, "model": "clip", "request": {}}', 'already_accepted, invalid_request operation_key'),
    ('{"operation_key": "y", "request": {}}', 'already_accepted, invalid_request model'), ('{"operation_key": "y", "model": "clip"}', 'already_accepted, invalid_request request'),
    ('{"operation_key": "y", "model": "clip", "request": "{}"}', 'already_accepted, invalid_request request'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "context": 3}', 'already_accepted, invalid_request context'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "priority": "high"}', 'already_accepted, invalid_request priority'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "priority": 32768}', 'already_accepted, invalid_request priority'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "priority": 1.5}', 'already_accepted, invalid_request priority'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "start_within": "soon"}', 'already_accepted, invalid_request start_within'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "start_within": "-1 hour"}', 'already_accepted, invalid_request start_within'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "max_ahead": -1}', 'already_accepted, invalid_request max_ahead'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "max_ahead": 1e30}', 'already_accepted, invalid_request max_ahead'),
    ('{"operation_key": "y", "model": "clip", "request": {}, "max_cost_micro": "1"}', 'already_accepted, invalid_request max_cost_micro')) x(i, e);
SELECT is(pg_temp.many('e', '[{"operation_key": "z", "model": "clip", "request": {}, "context": null, "priority": null, "start_within": null, "max_ahead": null, "max_cost_micro": null}]'), 'accepted', 'null of JSON is the default of an optional argument');
SELECT is(pg_temp.many('e', '[{"operation_key": "z2", "model": "clip", "request": {}, "priorty": 5}]'), 'invalid_request priorty', 'a name that is no argument is not passed over');
SELECT is((SELECT count(*) FROM admission.job WHERE tenant = 'e'), 2::bigint, 'two of all these were jobs');

-- a large batch
INSERT INTO admission.tenant (tenant, concurrency_override) VALUES ('large', 10000);
CALL pg_temp.fund('large', 1000000000);
SELECT is((SELECT count(*) FROM admission.admit_many('large', (SELECT jsonb_agg(pg_temp.item('large ' || i)) FROM generate_series(1, 5000) i)) d WHERE d.code = 'accepted'), 5000::bigint, 'five thousand at once');
SELECT is(pg_temp.load('large'), '0 5000', 'queued');
SELECT is((SELECT count(DISTINCT d.job_id) FROM admission.admit_many('large', (SELECT jsonb_agg(pg_temp.item('large ' || i)) FROM generate_series(1, 5000) i)) d WHERE d.code = 'already_accepted'), 5000::bigint, 'replayed');
SELECT is((SELECT count(*) FROM admission.claim_next('w', 1000, tenants => '{large}')), 1000::bigint, 'claimed');

-- settle_many
CREATE TEMP TABLE running AS SELECT row_number() OVER (ORDER BY j.job_no) AS n, j.job_id FROM admission.job j WHERE j.tenant = 'large' AND j.state = 'processing';
SELECT is((SELECT string_agg(d.code, ' ' ORDER BY d.ordinality) FROM admission.settle_many((SELECT jsonb_build_array(
        jsonb_build_object('job_id', pg_temp.job('large', 'large 1'), 'outcome', 'completed', 'actual_micro', 90000),
        jsonb_build_object('job_id', pg_temp.job('b', 'k1'), 'outcome', 'failed'),
        jsonb_build_object('job_id', pg_temp.job('large', 'large 1'), 'outcome', 'completed', 'actual_micro', 90000),
        jsonb_build_object('job_id', pg_temp.job('b', 'k2'), 'outcome', 'completed', 'attempt', 9),
        jsonb_build_object('job_id', '00000000-0000-7000-8000-000000000000', 'outcome', 'completed'),
        jsonb_build_object('job_id', pg_temp.job('b', 'k1'), 'outcome', 'completed'),
        jsonb_build_object('job_id', pg_temp.job('b', 'k2'), 'outcome', 'completed', 'attempt', 1, 'settlement_key', 'x', 'result', '{"public": {"u": 1}}'::jsonb))))
    WITH ORDINALITY d), 'settled settled already_settled stale_claim not_found settlement_conflict settled', 'decisions in the order of the items, whatever their tenants');
SELECT is(pg_temp.money('b'), '920000 300000 620000', 'money of one tenant');
SELECT is(pg_temp.reserved('large', 'large 1'), 'captured 100000 90000 10000', 'and of the other');
SELECT is((SELECT count(*) FROM admission.settle_many((SELECT jsonb_agg(jsonb_build_object('job_id', job_id, 'outcome', CASE WHEN n % 2 = 0 THEN 'completed' ELSE 'failed' END)) FROM running WHERE n > 1)) d WHERE d.code = 'settled'), 999::bigint, 'a thousand at once');
SELECT is(pg_temp.load('large'), '0 4000', 'ended');
SELECT is((SELECT string_agg(concat_ws(' ', d.code, d.details ->> 'field'), ', ' ORDER BY d.ordinality) FROM admission.settle_many(
    '[7, {}, {"job_id": "x", "outcome": "completed"}, {"job_id": "00000000-0000-7000-8000-000000000000"}, {"job_id": "00000000-0000-7000-8000-000000000000", "outcome": "completed", "actual_micro": 1.5},
      {"job_id": "00000000-0000-7000-8000-000000000000", "outcome": "completed", "attempt": "1"}, {"job_id": "00000000-0000-7000-8000-000000000000", "outcome": "completed", "result": 1}]') WITH ORDINALITY d),
    'invalid_request items, invalid_request job_id, invalid_request job_id, invalid_request outcome, invalid_request actual_micro, invalid_request attempt, invalid_request result', 'bad items');
SELECT is((SELECT string_agg(pg_temp.field(d), ', ') FROM admission.settle_many('{}') d), 'invalid_request items', 'no array');
SELECT is((SELECT count(*) FROM admission.settle_many('[]')), 0::bigint, 'nothing');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
