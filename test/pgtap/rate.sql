-- The submit rate (GCRA): a burst at once, then one by one, with an exact retry_after.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100);
INSERT INTO admission.tenant (tenant, concurrency_override, submit_rate, submit_burst) VALUES ('r', 1000, 2, 3), ('one', 1000, 0.1, NULL), ('fast', 1000, 1000000, 1), ('odd', 1000, 3, 1), ('many', 1000, 1, 5), ('poor', 1000, 0.01, 1);
DO $$ DECLARE t text; BEGIN FOREACH t IN ARRAY '{r,one,fast,odd,many}'::text[] LOOP CALL pg_temp.fund(t, 1000000); END LOOP; END $$;

CREATE FUNCTION pg_temp.go(tenant text, operation_key text) RETURNS text LANGUAGE sql
    AS $$ SELECT concat_ws(' ', d.code, d.retry_after, d.retry_after_seconds) FROM admission.admit($1, $2, 'clip', '{}') d $$;

SELECT is((SELECT string_agg(pg_temp.go('r', 'r' || i), ', ') FROM generate_series(1, 3) i), 'accepted, accepted, accepted', 'a burst of three');
SELECT is(pg_temp.go('r', 'r4'), 'rate_limited 00:00:00.5 1', 'the next in half a second');
SELECT is(pg_temp.go('r', 'r4'), 'rate_limited 00:00:00.5 1', 'asking takes nothing');
SELECT is(pg_temp.brief(admission.admit('r', 'r4', 'clip', '{}')), 'rate_limited 429 retry same', 'how it is answered');
SELECT is(pg_temp.go('r', 'r1'), 'already_accepted', 'a replay takes no token and needs none');
CALL pg_temp.later('0.499999 seconds');
SELECT is(pg_temp.go('r', 'r4'), 'rate_limited 00:00:00.000001 1', 'a microsecond too early');
CALL pg_temp.later('1 microsecond');
SELECT is(pg_temp.go('r', 'r4'), 'accepted', 'exactly then');
SELECT is(pg_temp.go('r', 'r5'), 'rate_limited 00:00:00.5 1', 'and the next half a second later');
CALL pg_temp.later('1 hour');
SELECT is((SELECT string_agg(pg_temp.go('r', 'later' || i), ', ') FROM generate_series(1, 4) i), 'accepted, accepted, accepted, rate_limited 00:00:00.5 1', 'rest fills up to the burst, not beyond');

SELECT is(pg_temp.go('one', 'o1'), 'accepted', 'burst null is 1');
SELECT is(pg_temp.go('one', 'o2'), 'rate_limited 00:00:10 10', 'one every ten seconds');
CALL pg_temp.later('3.5 seconds');
SELECT is(pg_temp.go('one', 'o2'), 'rate_limited 00:00:06.5 7', 'seconds are rounded up');
SELECT is(pg_temp.go('odd', 'a'), 'accepted', 'three a second');
SELECT cmp_ok((admission.admit('odd', 'b', 'clip', '{}')).retry_after, '<=', '0.333334 seconds'::interval, 'a third of a second');
CALL pg_temp.later('0.333334 seconds');
SELECT is(pg_temp.go('odd', 'b'), 'accepted', 'is enough when kept');
SELECT is(pg_temp.go('fast', 'a'), 'accepted', 'a million a second');
SELECT is(pg_temp.go('fast', 'b'), 'rate_limited 00:00:00.000001 1', 'is one a microsecond');

-- what is refused elsewhere takes no token
SELECT is((SELECT string_agg(DISTINCT (admission.admit('poor', 'p' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 10) i), 'insufficient_credits', 'ten refusals for want of money');
SELECT is((admission.admit('poor', 'p', 'none', '{}')).code, 'model_not_found', 'and one for want of a model');
CALL pg_temp.fund('poor', 1000000);
SELECT is(pg_temp.go('poor', 'p'), 'accepted', 'the token is still there');
SELECT is(pg_temp.go('poor', 'q'), 'rate_limited 00:01:40 100', 'and gone now');
SELECT is((admission.cancel('poor', pg_temp.job('poor', 'p'))).code, 'canceled', 'a cancel');
SELECT is(pg_temp.go('poor', 'q'), 'rate_limited 00:01:40 100', 'does not give it back');

-- a batch takes a token for each job
SELECT is((SELECT string_agg(d.code, ' ') FROM admission.admit_many('many',
    (SELECT jsonb_agg(jsonb_build_object('operation_key', 'm' || i, 'model', 'clip', 'request', '{}'::jsonb)) FROM generate_series(1, 7) i)) d),
    'accepted accepted accepted accepted accepted rate_limited rate_limited', 'five of seven');
SELECT is(pg_temp.go('many', 'm8'), 'rate_limited 00:00:01 1', 'then one a second');
CALL pg_temp.later('2 seconds');
SELECT is((SELECT string_agg(pg_temp.go('many', 'n' || i), ', ') FROM generate_series(1, 3) i), 'accepted, accepted, rate_limited 00:00:01 1', 'two seconds, two tokens');

-- settings count at once
UPDATE admission.tenant SET submit_rate = NULL WHERE tenant = 'one';
SELECT is((SELECT string_agg(DISTINCT pg_temp.go('one', 'free' || i), ', ') FROM generate_series(1, 50) i), 'accepted', 'no rate: no limit');
SELECT throws_ok($$UPDATE admission.tenant SET submit_rate = 0$$, '23514', NULL, 'a rate of zero is refused');
SELECT throws_ok($$UPDATE admission.tenant SET submit_rate = 'NaN'$$, '23514', NULL, 'a rate that is no number');
SELECT throws_ok($$UPDATE admission.tenant SET submit_burst = 0$$, '23514', NULL, 'a burst of nothing');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
