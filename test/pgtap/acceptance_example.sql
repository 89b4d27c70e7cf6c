-- The acceptance example of the first seed: global cap 3, tenant cap 2, budgets of 300 000 and 100 000 micro-USD, price 100 000.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant, queued_jobs_override) VALUES ('a', 0), ('b', 0), ('c', 0);
UPDATE admission.policy SET global_outstanding_cap = 3;

SELECT is((admission.top_up('a', 300000, 'manual', 'pay-a')).code, 'recorded', 'a buys 300 000');
SELECT is((admission.top_up('b', 100000, 'manual', 'pay-b')).code, 'recorded', 'b buys 100 000');
SELECT is((admission.top_up('c', 50000, 'manual', 'pay-c')).code, 'recorded', 'c buys 50 000');
SELECT is((admission.generation_limits('a')).accepted_generation_jobs_limit, 2, 'the tenant cap is 2');

SELECT is(pg_temp.brief(admission.admit('a', 'one', 'clip', '{"prompt": "one"}')), 'accepted 202', 'a/one is accepted');
SELECT pg_temp.job('a', 'one') AS a_one \gset
SELECT is(pg_temp.money('a'), '300000 100000 200000', 'a has 200 000 left');

SELECT is((admission.admit('a', 'one', 'clip', '{"prompt": "one"}')).job_id, :'a_one', 'a/one again is the same job');
SELECT is(pg_temp.brief(admission.admit('a', 'one', 'clip', '{"prompt": "one"}')), 'already_accepted 200', 'a/one again is a replay');
SELECT is(pg_temp.money('a'), '300000 100000 200000', 'still with 200 000 left');

SELECT is(pg_temp.brief(admission.admit('a', 'one', 'clip', '{"prompt": "other"}')), 'idempotency_conflict 409 new', 'a/one with another request is a conflict');
SELECT is(pg_temp.money('a'), '300000 100000 200000', 'which takes nothing');

SELECT is(pg_temp.brief(admission.admit('a', 'two', 'clip', '{"prompt": "two"}')), 'accepted 202', 'a/two is accepted');
SELECT is(pg_temp.brief(admission.admit('a', 'three', 'clip', '{"prompt": "three"}')), 'queue_full 429 retry same', 'a/three meets the tenant cap');
SELECT is(pg_temp.brief(admission.admit('b', 'one', 'clip', '{"prompt": "one"}')), 'accepted 202', 'b/one is accepted');
SELECT is(pg_temp.brief(admission.admit('b', 'two', 'clip', '{"prompt": "two"}')), 'global_capacity 429 retry same', 'b/two meets the global cap');
SELECT is(pg_temp.failed(admission.admit('b', 'two', 'clip', '{"prompt": "two"}')), 'global_capacity insufficient_credits', 'and would have had no money');

SELECT is(pg_temp.failed(admission.admit('c', 'one', 'clip', '{"prompt": "one"}')), 'global_capacity insufficient_credits', 'c/one fails both too while all is full');
UPDATE admission.policy SET global_outstanding_cap = 4;
SELECT is(pg_temp.brief(admission.admit('c', 'one', 'clip', '{"prompt": "one"}')), 'insufficient_credits 402 new', 'with a place free, c/one is refused for credit');
SELECT is(pg_temp.brief(admission.admit('nobody', 'one', 'clip', '{"prompt": "one"}')), 'unknown_tenant 401', 'an unknown tenant is refused');

SELECT is((SELECT string_agg(concat_ws('/', tenant, operation_key, state), ' ' ORDER BY tenant, operation_key) FROM admission.job),
    'a/one/queued a/two/queued b/one/queued', 'three jobs are written and no more');
SELECT is(pg_temp.money('a'), '300000 200000 100000', 'a: 100 000 left');
SELECT is(pg_temp.money('b'), '100000 100000 0', 'b: nothing left');
SELECT is(pg_temp.money('c'), '50000 0 50000', 'c: untouched');
SELECT is((SELECT count(*) FROM admission.intake), 3::bigint, 'one intake row for each acceptance');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
