-- One operation key, one job: what counts as the same request, and how long it is remembered.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme'), ('twin', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000), ('twin', 100000);
INSERT INTO admission.tenant (tenant) VALUES ('a'), ('b');
CALL pg_temp.fund('a', 200000);
CALL pg_temp.fund('b', 1000000);

CREATE FUNCTION pg_temp.again(request jsonb, model text DEFAULT 'clip') RETURNS text LANGUAGE sql
    AS $$ SELECT pg_temp.brief(admission.admit('a', 'k', $2, $1)) $$;

CREATE TEMP TABLE first AS SELECT d.* FROM admission.admit('a', 'k', 'clip', '{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}') d;
SELECT is((SELECT code FROM first), 'accepted', 'the first submission');

-- the same request
CREATE TEMP TABLE replay AS SELECT d.* FROM admission.admit('a', 'k', 'clip', '{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}') d;
SELECT is((SELECT concat_ws(' ', ok, code, http_status, retryable, retry_key) FROM replay), 't already_accepted 200 f', 'the same again is a replay');
SELECT results_eq('SELECT job_id, reserved_micro, details -> ''quote'', limits FROM replay', 'SELECT job_id, reserved_micro, details -> ''quote'', limits FROM first', 'with the same job and numbers');
SELECT is(pg_temp.again('{"tags":["x","y"],"size":{"h":2.50,"w":10},"seed":1,"prompt":"a cat"}'), 'already_accepted 200', 'key order and whitespace do not matter');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1.0, "size": {"w": 1e1, "h": 2.5}, "tags": ["x", "y"]}'), 'already_accepted 200', 'nor do number forms: 1 and 1.0, 10 and 1e1, 2.50 and 2.5');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 7, "seed": 1.00, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}'), 'already_accepted 200', 'of a repeated field the last counts');

-- another request
SELECT is(pg_temp.again('{"prompt": "a dog", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}'), 'idempotency_conflict 409 new', 'another prompt at the same price');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": "1", "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}'), 'idempotency_conflict 409 new', 'a text is not a number');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1.0000000001, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}'), 'idempotency_conflict 409 new', 'another number, however near');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["y", "x"]}'), 'idempotency_conflict 409 new', 'the order of an array matters');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"], "style": null}'), 'idempotency_conflict 409 new', 'null is not absent');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}}'), 'idempotency_conflict 409 new', 'a field less');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}', 'twin'), 'idempotency_conflict 409 new', 'another model at the same price');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}', 'none'), 'idempotency_conflict 409 new', 'the key counts before the model is looked up');

-- what the server adds is not part of the request
SELECT is(pg_temp.brief(admission.admit('a', 'k', 'clip', '{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}',
    context => '{"customer": 5}', priority => 9::smallint, start_within => '1 hour', max_ahead => 0, max_cost_micro => 0)),
    'already_accepted 200', 'context, priority, start_within, max_ahead and max_cost_micro are not fingerprinted');

SELECT is(pg_temp.money('a'), '200000 100000 100000', 'one hold in all');
SELECT is(pg_temp.load('a'), '0 1', 'one job in all');
SELECT is((SELECT count(*) FROM admission.intake i JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'a'), 1::bigint, 'one intake row in all');

-- defaults are filled in after the fingerprint
INSERT INTO admission.model (model, provider) VALUES ('film', 'acme');
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity) VALUES ('film', 'second', 1000, 'seconds', 5);
SELECT is((admission.admit('b', 'default', 'film', '{}')).code, 'accepted', 'without seconds');
SELECT is((admission.admit('b', 'default', 'film', '{}')).code, 'already_accepted', 'is the same as without seconds');
SELECT is((admission.admit('b', 'default', 'film', '{"seconds": 5}')).code, 'idempotency_conflict', 'but not as what the default would be');

-- a replay is a replay, whatever has happened since
UPDATE admission.model SET enabled = false;
DELETE FROM admission.price;
UPDATE admission.policy SET global_outstanding_cap = 0;
UPDATE admission.tenant SET submit_rate = 0.0001, submit_burst = 1, queued_jobs_override = 0, at_risk_micro = 0 WHERE tenant = 'a';
SELECT is((admission.adjust('a', -200000, 'taken')).code, 'recorded', 'the money is gone');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}'), 'already_accepted 200', 'all full, no money, no model, no price: still a replay');
SELECT is(pg_temp.again('{}'), 'idempotency_conflict 409 new', 'or a conflict');
UPDATE admission.policy SET global_outstanding_cap = NULL;

-- case 9: a job that outlives the retention of its key
UPDATE admission.model SET enabled = true;
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000), ('twin', 100000);
SELECT is(pg_temp.claim(1, ARRAY['a']), 'k', 'the job starts');
SELECT is((admission.begin_submission(pg_temp.job('a', 'k'), 1)).code, 'submission_started', 'and is at the provider');
CALL pg_temp.later('800 hours');
SELECT is((admission.expire()).unknown, 1, 'for longer than its lease and the retention');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}'), 'already_accepted 200', 'and its key still counts');
SELECT is(pg_temp.settle('a', 'k', 'failed'), 'settled', 'it ends');
SELECT is(pg_temp.again('{"prompt": "a cat", "seed": 1, "size": {"w": 10, "h": 2.50}, "tags": ["x", "y"]}'), 'already_accepted 200', 'a job that failed is a replay too');
SELECT is(pg_temp.again('{"prompt": "again"}'), 'idempotency_conflict 409 new', 'its key does not come free by that');

-- case 10: a rejection is not remembered under its key
UPDATE admission.tenant SET queued_jobs_override = 0, concurrency_override = NULL WHERE tenant = 'b';
SELECT is((admission.admit('b', 'r1', 'clip', '{}')).code, 'accepted', 'b fills its last place');
SELECT is((admission.admit('b', 'r2', 'clip', '{"x": 1}')).code, 'queue_full', 'no room');
SELECT is((admission.cancel('b', pg_temp.job('b', 'r1'))).code, 'canceled', 'room');
SELECT is((admission.admit('b', 'r2', 'clip', '{"x": 2}')).code, 'accepted', 'the same key, even with another request, is new');
SELECT is((admission.admit('b', 'r2', 'clip', '{"x": 1}')).code, 'idempotency_conflict', 'and bound from now on');
SELECT is((admission.admit('b', 'r1', 'clip', '{}')).code, 'already_accepted', 'a canceled job keeps its key');

-- a key belongs to its tenant
UPDATE admission.tenant SET queued_jobs_override = NULL WHERE tenant = 'b';
SELECT is((admission.admit('b', 'k', 'clip', '{"other": true}')).code, 'accepted', 'the same key of another tenant is another key');

-- case 11: keys are bytes
INSERT INTO admission.tenant (tenant, concurrency_override) VALUES ('keys', 1000);
CALL pg_temp.fund('keys', 10000000);
CREATE FUNCTION pg_temp.key(k text) RETURNS text LANGUAGE sql
    AS $$ SELECT pg_temp.field(admission.admit('keys', $1, 'clip', '{}')) $$;
SELECT is(pg_temp.key(''), 'invalid_request operation_key', 'an empty key');
SELECT is(pg_temp.key(NULL), 'invalid_request operation_key', 'no key');
SELECT is(pg_temp.key(repeat('k', 3000)), 'invalid_request operation_key', 'a key of 3 kB');
SELECT is(pg_temp.key((SELECT string_agg(md5(i::text), '') FROM generate_series(1, 500) i)), 'invalid_request operation_key', 'one of 16 kB that does not compress');
SELECT is(pg_temp.key(repeat('k', 256)), 'invalid_request operation_key', '256 bytes');
SELECT is(pg_temp.key(repeat('k', 255)), 'accepted', '255 bytes');
SELECT is(pg_temp.key(repeat('𝄞', 64)), 'invalid_request operation_key', '64 characters of 4 bytes are 256 bytes');
SELECT is(pg_temp.key(repeat('𝄞', 63)), 'accepted', '63 are 252');
SELECT is(pg_temp.key('O''Brien "quoted" \ ; -- $1'), 'accepted', 'quotes, backslash and comment signs');
SELECT is(pg_temp.key('O''Brien "quoted" \ ; -- $1'), 'already_accepted', 'come back as they went in');
SELECT is(pg_temp.key('abc'), 'accepted', 'a plain key');
SELECT is(pg_temp.key(k), 'accepted', format('%s is another', to_json(k))) FROM unnest(ARRAY['ABC', 'abc ', ' abc', 'a%', '%', '_bc', '*', 'a:b', 'é', E'e\u0301', E'abc\n', 'null']) k;
SELECT is((SELECT count(*) FROM admission.job_record j JOIN admission.tenant t USING (tenant_id) WHERE t.tenant = 'keys'), 16::bigint, 'sixteen different keys');
UPDATE admission.policy SET operation_key_max_length = 1024;
SELECT is(pg_temp.key((SELECT left(string_agg(md5(i::text), ''), 1024) FROM generate_series(1, 32) i)), 'accepted', 'the longest key the policy can allow fits the index');
UPDATE admission.policy SET operation_key_max_length = 3;
SELECT is(pg_temp.key('abc'), 'already_accepted', 'a shorter maximum');
SELECT is(pg_temp.key('abcd'), 'invalid_request operation_key', 'counts at once');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
