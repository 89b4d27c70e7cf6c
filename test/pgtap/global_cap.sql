-- The global cap (case 49, serial part): set, lowered below what is outstanding, raised and unset.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100);
INSERT INTO admission.tenant (tenant, concurrency_override) VALUES ('a', 1000), ('b', 1000);
CALL pg_temp.fund('a', 1000000);
CALL pg_temp.fund('b', 1000000);

CREATE SEQUENCE pg_temp.key;
-- codes of n admissions by a and b in turn: + accepted, 0 refused by the cap
CREATE FUNCTION pg_temp.go(n integer) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(CASE d.code WHEN 'accepted' THEN '+' WHEN 'global_capacity' THEN '0' ELSE d.code END, '')
      FROM generate_series(1, $1) i, LATERAL admission.admit(CASE i % 2 WHEN 0 THEN 'a' ELSE 'b' END, 'k' || nextval('pg_temp.key'), 'clip', '{}') d $$;
-- ends n outstanding jobs, running ones first: - canceled, = settled
CREATE FUNCTION pg_temp.conclude(n integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    j record;
    codes text := '';
BEGIN
    FOR j IN SELECT tenant, job_id FROM admission.job WHERE finished_at IS NULL
              ORDER BY state = 'processing' DESC, length(operation_key), operation_key LIMIT n LOOP
        codes := codes || CASE (admission.cancel(j.tenant, j.job_id)).code WHEN 'canceled' THEN '-'
            ELSE CASE (admission.settle(j.job_id, 'failed')).code WHEN 'settled' THEN '=' ELSE '?' END END;
    END LOOP;
    RETURN codes;
END $$;

SELECT is(pg_temp.go(3), '+++', 'no cap: three jobs');
UPDATE admission.policy SET global_outstanding_cap = 5;
SELECT is(pg_temp.go(4), '++00', 'a cap of 5 counts what is outstanding');
SELECT is((admission.preview('a', NULL, 'clip', '{}')).code, 'global_capacity', 'preview too');
UPDATE admission.policy SET global_outstanding_cap = 2;
SELECT is(pg_temp.go(1), '0', 'lowered below what is outstanding: nothing enters');
SELECT is(pg_temp.conclude(2), '--', 'two end');
SELECT is(pg_temp.go(1), '0', 'three outstanding: still above');
SELECT is(pg_temp.conclude(1), '-', 'one ends');
SELECT is(pg_temp.go(1), '0', 'two outstanding: full');
SELECT is(pg_temp.conclude(1), '-', 'one ends');
SELECT is(pg_temp.go(2), '+0', 'one outstanding: one place');
UPDATE admission.policy SET global_outstanding_cap = 4;
SELECT is(pg_temp.go(4), '++00', 'raised: two places');
UPDATE admission.policy SET global_outstanding_cap = 1;
UPDATE admission.policy SET global_outstanding_cap = 6;
SELECT is(pg_temp.go(4), '++00', 'lowered and raised with a debt in between: exactly two places');
UPDATE admission.policy SET global_outstanding_cap = NULL;
SELECT is(pg_temp.go(4), '++++', 'unset: as many as you like');
SELECT is((SELECT count(*) FROM admission.claim_next('w', 3)), 3::bigint, 'three of the ten run');
UPDATE admission.policy SET global_outstanding_cap = 10;
SELECT is(pg_temp.go(1), '0', 'set again to exactly what is outstanding, running jobs included');
SELECT is(pg_temp.conclude(10), '===-------', 'all end');
SELECT is(pg_temp.go(12), '++++++++++00', 'and all ten places come back, exactly');
UPDATE admission.policy SET global_outstanding_cap = 0;
SELECT is(pg_temp.go(1), '0', 'a cap of zero');
SELECT is(pg_temp.conclude(10), '----------', 'lets jobs end');
SELECT is(pg_temp.go(1), '0', 'and none enter');
UPDATE admission.policy SET global_outstanding_cap = 1000;
SELECT is(pg_temp.go(900), repeat('+', 900), 'a large cap');
UPDATE admission.policy SET global_outstanding_cap = 899;
SELECT is(pg_temp.go(1), '0', 'lowered by a little');
SELECT is(pg_temp.conclude(2), '--', 'two end');
SELECT is(pg_temp.go(2), '+0', 'one place');
SELECT is(pg_temp.conclude(1000), repeat('-', 899), 'all end');
SELECT is(pg_temp.go(901), repeat('+', 899) || '00', 'the cap is reached to the last place');

-- a job that expires or fails gives its place back too
SELECT is(pg_temp.conclude(1000), repeat('-', 899), 'all end');
UPDATE admission.policy SET global_outstanding_cap = 2, max_attempts = 1;
SELECT is((admission.admit('a', 'late', 'clip', '{}', start_within => '1 minute')).code, 'accepted', 'one with a deadline');
SELECT is((admission.admit('b', 'lost', 'clip', '{}')).code, 'accepted', 'one to be lost');
SELECT is(pg_temp.claim(1, ARRAY['b']), 'lost', 'a worker takes it and dies');
CALL pg_temp.later('1 hour');
SELECT is((SELECT concat_ws(' ', e.expired, e.failed) FROM admission.expire() e), '1 1', 'both end by time');
SELECT is(pg_temp.go(3), '++0', 'two places');
SELECT throws_ok('UPDATE admission.policy SET global_outstanding_cap = -1', '23514', NULL, 'no cap below zero');

-- a refusal by another gate takes no token; a batch takes one a job
SELECT is(pg_temp.conclude(1), '-', 'one ends, b''s; a''s waits');
SELECT is((admission.admit('a', 'dear', 'clip', '{}', max_cost_micro => 1)).code, 'cost_too_high', 'refused for its cost');
SELECT is((admission.admit('a', 'ahead', 'clip', '{}', max_ahead => 0)).code, 'queue_too_long', 'refused for the queue');
SELECT is((SELECT string_agg(d.code, ' ') FROM admission.admit_many('b', '[{"operation_key": "y1", "model": "clip", "request": {}}, {"operation_key": "y2", "model": "clip", "request": {}}]') d),
    'accepted global_capacity', 'a batch meets the cap in its middle');
SELECT is((SELECT count(*) FROM admission.job WHERE finished_at IS NULL), 2::bigint, 'two outstanding');

SELECT is_empty('SELECT * FROM admission.verify()', 'tokens are conserved');
SELECT * FROM finish();
ROLLBACK;
