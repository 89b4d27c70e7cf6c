-- Whose job is next: tenants in turn by weight, each tenant's by priority and then order of admission.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme'), ('film', 'acme'), ('song', 'zeta');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100), ('film', 100), ('song', 100);

CREATE PROCEDURE pg_temp.tenant(name text, weight integer DEFAULT 1) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO admission.tenant (tenant, weight, concurrency_override) VALUES (name, weight, 1000);
    CALL pg_temp.fund(name, 1000000);
END $$;
CREATE FUNCTION pg_temp.put(tenant text, operation_key text, model text DEFAULT 'clip', priority integer DEFAULT 0) RETURNS text LANGUAGE sql
    AS $$ SELECT (admission.admit($1, $2, $3, '{}', priority => $4::smallint)).code $$;
-- the tenants that n claims of one job each serve, by first letter of the keys
CREATE FUNCTION pg_temp.served(n integer) RETURNS text LANGUAGE sql
    AS $$ SELECT string_agg(left(pg_temp.claim(), 1), '') FROM generate_series(1, $1) $$;

-- one tenant: order of admission, then priority
CALL pg_temp.tenant('one');
SELECT is((SELECT string_agg(DISTINCT pg_temp.put('one', 'n' || i), ' ') FROM generate_series(1, 3) i), 'accepted', 'three jobs');
SELECT is(pg_temp.put('one', 'high', priority => 5), 'accepted', 'one of high priority');
SELECT is(pg_temp.put('one', 'low', priority => -5), 'accepted', 'one of low priority');
SELECT is(pg_temp.put('one', 'high2', priority => 5), 'accepted', 'another of high priority');
SELECT is(pg_temp.put('one', 'film', 'film'), 'accepted', 'one of another model');
SELECT is(pg_temp.put('one', 'n4'), 'accepted', 'and one more');
SELECT is((admission.admit('one', 'null', 'clip', '{}', priority => NULL)).code, 'accepted', 'priority null counts as 0');
SELECT is(pg_temp.put('one', 'top', priority => 32767), 'accepted', 'the highest');
SELECT is(pg_temp.put('one', 'bottom', priority => -32768), 'accepted', 'the lowest');
CREATE TEMP TABLE promised AS
    SELECT s.operation_key, s.position, s.position_exact FROM admission.job j, admission.status('one', j.job_id) s WHERE j.tenant = 'one';
SELECT is((SELECT string_agg(operation_key, ' ' ORDER BY position) FROM promised), 'top high high2 n1 n2 n3 film n4 null low bottom', 'status tells the order');
SELECT is((SELECT array_agg(position ORDER BY position) FROM promised), '{1,2,3,4,5,6,7,8,9,10,11}'::bigint[], 'as positions from 1');
SELECT is((SELECT bool_and(position_exact) FROM promised), true, 'exactly');
SELECT is(pg_temp.claim(2), 'top high', 'a batch keeps the order');
SELECT is((SELECT s.position FROM admission.status('one', pg_temp.job('one', 'n1')) s), 2::bigint, 'positions move up');
SELECT is((SELECT s.position FROM admission.status('one', pg_temp.job('one', 'top')) s), NULL, 'what runs has none');
SELECT is((admission.requeue(pg_temp.job('one', 'high'), 1)).code, 'requeued', 'one is given back');
SELECT is((SELECT s.position FROM admission.status('one', pg_temp.job('one', 'high')) s), 1::bigint, 'to its old place');
SELECT is((SELECT s.position FROM admission.status('one', pg_temp.job('one', 'high2')) s), 2::bigint, 'before the rest');
SELECT is(pg_temp.claim(100), 'high high2 n1 n2 n3 film n4 null low bottom', 'claims take them in that order');
SELECT is(pg_temp.claim(100), NULL, 'and then there is nothing');

-- max_ahead speaks of the same order
CALL pg_temp.tenant('ahead');
SELECT is((SELECT string_agg(DISTINCT pg_temp.put('ahead', 'a' || i), ' ') FROM generate_series(1, 3) i), 'accepted', 'three jobs');
SELECT is((admission.admit('ahead', 'a4', 'clip', '{}', max_ahead => 2)).code, 'queue_too_long', 'three are before it: more than 2');
SELECT is((admission.admit('ahead', 'a4', 'film', '{}', max_ahead => 2)).code, 'queue_too_long', 'whatever their model');
SELECT is((admission.admit('ahead', 'a4', 'clip', '{}', max_ahead => 3)).code, 'accepted', 'not more than 3');
SELECT is((admission.admit('ahead', 'a5', 'clip', '{}', priority => 1::smallint, max_ahead => 0)).code, 'accepted', 'a higher priority has nobody before it');
SELECT is((admission.admit('ahead', 'a6', 'clip', '{}', priority => 1::smallint, max_ahead => 0)).code, 'queue_too_long', 'but the one of the same priority');
SELECT is(pg_temp.claim(1), 'a5', 'that one starts');
SELECT is((admission.admit('ahead', 'a6', 'clip', '{}', priority => 1::smallint, max_ahead => 0)).code, 'accepted', 'and is not ahead any more');
SELECT is(pg_temp.claim(100), 'a6 a1 a2 a3 a4', 'the order of claims');

-- lanes pass a paused model
CALL pg_temp.tenant('lanes');
SELECT is(pg_temp.put('lanes', 'l1', 'film', 9) || pg_temp.put('lanes', 'l2', 'clip') || pg_temp.put('lanes', 'l3', 'film') || pg_temp.put('lanes', 'l4', 'song'),
    'acceptedacceptedacceptedaccepted', 'four jobs of three models');
UPDATE admission.model SET paused_until = admission.clock() + '1 hour' WHERE model = 'film';
SELECT is(pg_temp.claim(100), 'l2 l4', 'a paused model holds up nobody else');
SELECT is(pg_temp.claim(100), NULL, 'only itself');
UPDATE admission.model SET paused_until = NULL WHERE model = 'film';
SELECT is(pg_temp.claim(100), 'l1 l3', 'lifting the pause starts them at once');
SELECT is(pg_temp.put('lanes', 'l5', 'film') || pg_temp.put('lanes', 'l6', 'clip'), 'acceptedaccepted', 'two more');
UPDATE admission.model SET enabled = false WHERE model = 'film';
SELECT ok(pg_temp.claim(100) IN ('l6', 'l5 l6'), 'a disabled model holds up nobody else either');
UPDATE admission.model SET enabled = true WHERE model = 'film';
SELECT coalesce(pg_temp.claim(100), '') AS rest \gset
SELECT is(pg_temp.state('lanes', 'l5'), 'processing/none/1', 'and goes on when it is enabled');

-- filters
CALL pg_temp.tenant('filter1');
CALL pg_temp.tenant('filter2');
SELECT is(pg_temp.put('filter1', 'x1', 'clip') || pg_temp.put('filter1', 'x2', 'song') || pg_temp.put('filter2', 'y1', 'film') || pg_temp.put('filter2', 'y2', 'clip'),
    'acceptedacceptedacceptedaccepted', 'two tenants, three models');
SELECT is(pg_temp.claim(100, models => '{song}'), 'x2', 'models: only of this one');
SELECT is(pg_temp.claim(100, tenants => '{filter2}', models => '{clip,song}'), 'y2', 'tenants and models: of both');
SELECT is(pg_temp.claim(100, tenants => '{}'), NULL, 'of no tenant: nothing');
SELECT is(pg_temp.claim(100, models => '{}'), NULL, 'of no model: nothing');
SELECT is(pg_temp.claim(100, tenants => '{nobody}'), NULL, 'of an unknown tenant: nothing');
SELECT is(pg_temp.claim(100, models => '{nothing}'), NULL, 'of an unknown model: nothing');
SELECT is(pg_temp.claim(100, tenants => '{filter1}'), 'x1', 'tenants: only of this one');
SELECT is(pg_temp.claim(100, tenants => ARRAY['filter2', NULL, 'filter2']), 'y1', 'named twice');

-- tenants in turn
CALL pg_temp.tenant('a');
CALL pg_temp.tenant('b');
CALL pg_temp.tenant('c');
SELECT is((SELECT string_agg(DISTINCT pg_temp.put(t, t || i), ' ') FROM unnest('{a,b,c}'::text[]) t, generate_series(1, CASE t WHEN 'a' THEN 200 ELSE 3 END) i), 'accepted', 'a has 200 jobs in front, b and c three each');
SELECT pg_temp.served(9) AS turns \gset
SELECT ok(:'turns' IN ('abcabcabc', 'bcabcabca', 'cabcabcab'), 'each in its turn: ' || :'turns');
SELECT is(pg_temp.served(3), 'aaa', 'then the one that has jobs left');
SELECT is(pg_temp.put('b', 'b4'), 'accepted', 'another comes back');
SELECT ok(pg_temp.served(2) LIKE '%b%', 'and is served on the first or second call');
SELECT is((SELECT string_agg(DISTINCT pg_temp.put(t, t || i), ' ') FROM unnest('{b,c}'::text[]) t, generate_series(5, 14) i), 'accepted', 'ten more for b and c');
CREATE TEMP TABLE taken AS SELECT c.tenant FROM admission.claim_next('w', 30) c;
SELECT results_eq('SELECT tenant, count(*) FROM taken GROUP BY 1 ORDER BY 1', $$VALUES ('a', 10::bigint), ('b', 10), ('c', 10)$$, 'a batch is shared out in the same way');
SELECT is((SELECT count(*) FROM admission.claim_next('w', 1000)), 183::bigint, 'and takes what is left');

-- weights
CALL pg_temp.tenant('h', 3);
CALL pg_temp.tenant('l', 1);
SELECT is((SELECT string_agg(DISTINCT pg_temp.put(t, t || i), ' ') FROM unnest('{h,l}'::text[]) t, generate_series(1, 40) i), 'accepted', 'forty jobs each');
SELECT pg_temp.served(16) AS turns \gset
SELECT is(length(replace(:'turns', 'l', '')), 12, 'weights 3 and 1: twelve of sixteen (' || :'turns' || ')');
SELECT ok(repeat('hhhl', 6) LIKE '%' || :'turns' || '%', 'three in a row, then one');
UPDATE admission.tenant SET weight = 1 WHERE tenant = 'h';
SELECT is(length(replace(pg_temp.served(16), 'l', '')) BETWEEN 7 AND 9, true, 'an edited weight counts at once');

-- a full tenant does not stop the others
UPDATE admission.tenant SET concurrency_override = NULL WHERE tenant IN ('h', 'l');
SELECT is(pg_temp.claim(100), NULL, 'both are above their limit now');
SELECT is(pg_temp.put('c', 'c99'), 'accepted', 'a third has one job');
SELECT is(pg_temp.claim(100), 'c99', 'which is claimed at once');

-- next_wake
SELECT is((SELECT count(*) FROM admission.claim_next('w', 1000)), 0::bigint, 'nothing may start');
SELECT cmp_ok((SELECT admission.next_wake()), '<=', admission.clock() + interval '5 minutes', 'a worker is told to look again when the leases end, at the latest');

-- a worker may not ask for nonsense
SELECT throws_ok($$SELECT admission.claim_next('w', 0)$$, '22023', NULL, 'no jobs');
SELECT throws_ok($$SELECT admission.claim_next('w', -1)$$, '22023', NULL, 'less than no jobs');
SELECT throws_ok($$SELECT admission.claim_next('w', 1, '0 s')$$, '22023', NULL, 'no lease');
SELECT throws_ok($$SELECT admission.claim_next('w', 1, '-1 s')$$, '22023', NULL, 'a lease of the past');
SELECT throws_ok($$SELECT admission.claim_next('w', 1, NULL, 'dreaming')$$, '22023', NULL, 'a stage that is none');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
