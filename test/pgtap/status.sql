-- What a tenant may see of its jobs and money, and what it may not.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'SECRET-provider'), ('film', 'SECRET-provider');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000), ('film', 100000);
INSERT INTO admission.tenant (tenant, labels) VALUES ('s', '{"note": "SECRET-label"}'), ('other', '{}');
SELECT is((admission.top_up('s', 1000000, 'manual', 'buy-1')).code, 'recorded', 'money');

CREATE FUNCTION pg_temp.status(tenant text, operation_key text) RETURNS text LANGUAGE sql AS $$
    SELECT concat_ws(' ', s.status, s.stage, s.terminal, s.result_ready, s.position, s.reserved_micro, s.captured_micro) FROM admission.status_of($1, $2) s $$;

-- a job's whole life as its tenant sees it
SELECT is((admission.admit('s', 'j1', 'clip', '{"prompt": "x"}', '{"customer": "SECRET-customer"}', start_within => '1 hour')).code, 'accepted', 'a job');
SELECT is((admission.admit('s', 'j2', 'film', '{}', '{"batch": 1, "customer": "SECRET-customer"}')).code, 'accepted', 'another');
SELECT pg_temp.job('s', 'j1') AS j1, pg_temp.job('s', 'j2') AS j2 \gset
SELECT is(pg_temp.status('s', 'j1'), 'queued generation f f 1 100000 0', 'queued, first');
SELECT is(pg_temp.status('s', 'j2'), 'queued generation f f 2 100000 0', 'queued, second');
SELECT is((SELECT to_jsonb(s) - '{job_id,position,position_exact,estimated_start,poll_after}'::text[] FROM admission.status('s', :'j1') s),
    '{"operation_key": "j1", "model": "clip", "status": "queued", "stage": "generation", "terminal": false, "result_ready": false, "result": null, "error": null,
      "reserved_micro": 100000, "captured_micro": 0, "created_at": "2026-03-01T12:00:00+00:00", "start_by": "2026-03-01T13:00:00+00:00", "started_at": null, "finished_at": null}',
    'status, the whole of it');
SELECT is((SELECT s FROM admission.status('s', :'j1') s), (SELECT s FROM admission.status_of('s', 'j1') s), 'status_of is status by key');
SELECT cmp_ok((SELECT poll_after FROM admission.status('s', :'j1')), '>', '0 seconds'::interval, 'poll_after of a job that is open');
SELECT is(pg_temp.claim(), 'j1', 'claimed');
SELECT is(pg_temp.status('s', 'j1'), 'processing generation f f 100000 0', 'processing');
SELECT is((admission.begin_submission(:'j1', 1)).code, 'submission_started', 'begun');
SELECT is((admission.submitted(:'j1', 1, 'SECRET-provider-job')).code, 'submitted', 'submitted');
SELECT is(pg_temp.status('s', 'j1'), 'processing generation f f 100000 0', 'still processing: the submission is not the tenant''s affair');
CALL pg_temp.later('90 seconds');
SELECT is((admission.settle(:'j1', 'completed', 90000, 'SECRET-key', 1, '{"public": {"url": "https://cdn.example/x"}, "private": {"path": "SECRET-path"}}')).code, 'settled', 'settled');
SELECT is(pg_temp.status('s', 'j1'), 'completed generation t t 100000 90000', 'completed');
SELECT is((SELECT to_jsonb(s) - '{job_id,position,position_exact,estimated_start}'::text[] FROM admission.status('s', :'j1') s),
    '{"operation_key": "j1", "model": "clip", "status": "completed", "stage": "generation", "terminal": true, "result_ready": true, "result": {"url": "https://cdn.example/x"}, "error": null,
      "reserved_micro": 100000, "captured_micro": 90000, "created_at": "2026-03-01T12:00:00+00:00", "start_by": "2026-03-01T13:00:00+00:00", "started_at": "2026-03-01T12:00:00+00:00",
      "finished_at": "2026-03-01T12:01:30+00:00", "poll_after": null}', 'with the public part of its result');
SELECT is(pg_temp.claim(), 'j2', 'the other');
SELECT is(pg_temp.settle('s', 'j2', 'failed'), 'settled', 'fails');
SELECT is(pg_temp.status('s', 'j2'), 'failed generation t f 100000 0', 'failed');
SELECT is((SELECT error ->> 'code' FROM admission.status('s', :'j2')), 'generation_failed', 'with an error');
SELECT is((admission.admit('s', 'j3', 'film', '{}')).code, 'accepted', 'a third');
SELECT is(pg_temp.claim(), 'j3', 'claimed');
SELECT is((admission.settle(pg_temp.job('s', 'j3'), 'failed', result => '{"public": {"error": {"code": "nsfw", "message": "refused by policy"}}, "private": {"error": "SECRET-error"}}')).code, 'settled', 'fails with a reason');
SELECT is((SELECT error FROM admission.status_of('s', 'j3')), '{"code": "nsfw", "message": "refused by policy"}', 'of which the public part is shown');
SELECT is((admission.admit('s', 'j4', 'film', '{}', start_within => '1 second')).code, 'accepted', 'a fourth');
CALL pg_temp.later('2 seconds');
SELECT is((admission.expire()).expired, 1, 'expires');
SELECT is(pg_temp.status('s', 'j4'), 'expired generation t f 100000 0', 'expired');
SELECT is((SELECT error ->> 'code' FROM admission.status_of('s', 'j4')), 'expired', 'with an error');

-- other tenants do not see them
SELECT is((SELECT count(*) FROM admission.status('other', :'j1') s WHERE s.job_id IS NOT NULL), 0::bigint, 'not by id');
SELECT is((SELECT count(*) FROM admission.status_of('other', 'j1') s WHERE s.job_id IS NOT NULL), 0::bigint, 'not by key');
SELECT is((SELECT count(*) FROM admission.list_jobs('other')), 0::bigint, 'not in a list');
SELECT is((SELECT count(*) FROM admission.events('other', :'j1')), 0::bigint, 'not as events');
SELECT is((SELECT count(*) FROM admission.statement('other')), 0::bigint, 'not in a statement');
SELECT is((SELECT count(*) FROM admission.status('nobody', :'j1') s WHERE s.job_id IS NOT NULL), 0::bigint, 'nor does nobody');
SELECT is((SELECT count(*) FROM admission.status(NULL, NULL) s WHERE s.job_id IS NOT NULL), 0::bigint, 'nor null');
SELECT is((admission.balance('nobody')).balance_micro, NULL::bigint, 'nobody has no balance');

-- lists come in pages, in order of admission
SELECT is((SELECT string_agg((admission.admit('s', 'l' || i, 'clip', '{}', jsonb_build_object('batch', i % 2))).code, ' ') FROM generate_series(1, 6) i), 'accepted accepted accepted accepted accepted accepted', 'six more');
SELECT is(pg_temp.claim(), 'l1', 'one runs');
SELECT is((SELECT string_agg(operation_key || ':' || status, ' ' ORDER BY ordinality) FROM admission.list_jobs('s') WITH ORDINALITY),
    'j1:completed j2:failed j3:failed j4:expired l1:processing l2:queued l3:queued l4:queued l5:queued l6:queued', 'all');
SELECT is((SELECT string_agg(operation_key, ' ' ORDER BY ordinality) FROM admission.list_jobs('s', 'queued') WITH ORDINALITY), 'l2 l3 l4 l5 l6', 'queued ones');
SELECT is((SELECT string_agg(operation_key, ' ' ORDER BY ordinality) FROM admission.list_jobs('s', 'failed') WITH ORDINALITY), 'j2 j3', 'failed ones');
SELECT is((SELECT string_agg(operation_key, ' ' ORDER BY ordinality) FROM admission.list_jobs('s', NULL, NULL, 3) WITH ORDINALITY), 'j1 j2 j3', 'a page');
SELECT is((SELECT string_agg(operation_key, ' ' ORDER BY ordinality) FROM admission.list_jobs('s', NULL, pg_temp.job('s', 'j3'), 3) WITH ORDINALITY), 'j4 l1 l2', 'the next');
SELECT is((SELECT string_agg(operation_key, ' ' ORDER BY ordinality) FROM admission.list_jobs('s', 'queued', pg_temp.job('s', 'l3'), 2) WITH ORDINALITY), 'l4 l5', 'a page of queued ones');
SELECT is((SELECT count(*) FROM admission.list_jobs('s', NULL, pg_temp.job('s', 'l6'))), 0::bigint, 'the last is empty');
SELECT throws_ok($$SELECT * FROM admission.list_jobs('s', 'sleeping')$$, '22023', NULL, 'a state that is none');
SELECT throws_ok($$SELECT * FROM admission.list_jobs('s', max_jobs => 0)$$, '22023', NULL, 'a page of nothing');
SELECT throws_ok($$SELECT * FROM admission.list_jobs('s', max_jobs => NULL)$$, '22023', NULL, 'a page of null');
SELECT throws_ok($$SELECT * FROM admission.list_jobs('other', NULL, pg_temp.job('s', 'l1'))$$, '22023', NULL, 'after a job of another tenant');

-- cancel_queued cancels what contains a context
SELECT is((SELECT string_agg(d.code, ' ') FROM admission.cancel_queued('s', '{"batch": 1}') d), 'canceled canceled', 'the queued ones of a batch');
SELECT is((SELECT string_agg(operation_key, ' ' ORDER BY ordinality) FROM admission.list_jobs('s', 'canceled') WITH ORDINALITY), 'l3 l5', 'and only those: l1 of that batch runs');
SELECT is((SELECT count(*) FROM admission.cancel_queued('s', '{"batch": 1}')), 0::bigint, 'once');
SELECT is((SELECT count(*) FROM admission.cancel_queued('s', '{"batch": "0"}')), 0::bigint, 'a text is not a number');
SELECT is((SELECT string_agg(d.code, ' ') FROM admission.cancel_queued('other', '{}') d), NULL, 'another tenant has none');
SELECT is((SELECT string_agg(d.code, ' ') FROM admission.cancel_queued('s') d), 'canceled canceled canceled', 'all that is left');
SELECT is(pg_temp.load('s'), '1 0', 'but what runs');
SELECT is((SELECT string_agg(d.code, ' ') FROM admission.cancel_queued('nobody') d), 'unknown_tenant', 'an unknown tenant is told so');
SELECT is((SELECT string_agg(pg_temp.field(d), ' ') FROM admission.cancel_queued('s', '[]') d), 'invalid_request context', 'a context that is no object');

-- events: the public history
SELECT is((SELECT string_agg(event, ' ' ORDER BY ordinality) FROM admission.events('s', :'j1') WITH ORDINALITY), 'accepted started completed', 'events of a job that completed');
SELECT is((SELECT string_agg(event, ' ' ORDER BY ordinality) FROM admission.events('s', :'j2') WITH ORDINALITY), 'accepted started failed', 'that failed');
SELECT is((SELECT string_agg(event, ' ' ORDER BY ordinality) FROM admission.events('s', pg_temp.job('s', 'j4')) WITH ORDINALITY), 'accepted expired', 'that expired');
SELECT is((SELECT string_agg(event, ' ' ORDER BY ordinality) FROM admission.events('s', pg_temp.job('s', 'l3')) WITH ORDINALITY), 'accepted canceled', 'that was canceled');
SELECT results_eq(format('SELECT at, event, attempt, details FROM admission.events(''s'', %L)', :'j1'), $$VALUES
    ('2026-03-01 12:00:00+00'::timestamptz, 'accepted', NULL::integer, '{"reserved_micro": 100000}'::jsonb),
    ('2026-03-01 12:00:00+00', 'started', 1, '{}'),
    ('2026-03-01 12:01:30+00', 'completed', 1, '{"captured_micro": 90000, "released_micro": 10000}')$$, 'with times and money');
SELECT is((admission.refund(:'j1', 40000, 'refund-1', 'SECRET-reason')).code, 'recorded', 'a refund');
SELECT is((SELECT string_agg(event, ' ' ORDER BY ordinality) FROM admission.events('s', :'j1') WITH ORDINALITY), 'accepted started completed refunded', 'is an event');
SELECT is((admission.requeue(pg_temp.job('s', 'l1'), 1, reason => 'SECRET-reason')).code, 'requeued', 'given back');
SELECT is(pg_temp.claim(), 'l1', 'and taken again');
SELECT is((SELECT string_agg(event || coalesce(' ' || attempt, ''), ', ' ORDER BY ordinality) FROM admission.events('s', pg_temp.job('s', 'l1')) WITH ORDINALITY),
    'accepted, started 1, requeued 1, started 2', 'with attempts');

-- nothing private leaks
SELECT is((SELECT count(*) FROM admission.job j, admission.status('s', j.job_id) s WHERE to_jsonb(s)::text LIKE '%SECRET%'), 0::bigint, 'status says nothing private');
SELECT is((SELECT count(*) FROM admission.list_jobs('s') s WHERE to_jsonb(s)::text LIKE '%SECRET%'), 0::bigint, 'nor does list_jobs');
SELECT is((SELECT count(*) FROM admission.job j, admission.events('s', j.job_id) e WHERE to_jsonb(e)::text LIKE '%SECRET%'), 0::bigint, 'nor do events');
SELECT is((SELECT count(*) FROM admission.job j, LATERAL (SELECT admission.cancel('s', j.job_id) d) x WHERE to_jsonb(d)::text LIKE '%SECRET%'), 0::bigint, 'nor does a decision of cancel');
SELECT is(to_jsonb(admission.admit('s', 'j1', 'clip', '{"prompt": "x"}'))::text LIKE '%SECRET%', false, 'nor of a replay');
SELECT is((SELECT count(*) FROM admission.job_history(:'j1') h WHERE to_jsonb(h)::text LIKE '%SECRET%') > 0, true, 'job_history is the operator''s and knows');

-- job_history and statement, for operators and finance
SELECT is((SELECT string_agg(event, ' ' ORDER BY ordinality) FROM admission.job_history(:'j1') WITH ORDINALITY), 'admitted claim begin_submission submitted settle refund', 'job_history');
SELECT is((admission.heartbeat(:'j1', 1)).ok, false, 'a stale report');
SELECT is((admission.settle(:'j1', 'failed')).code, 'settlement_conflict', 'and a contradiction');
SELECT is((SELECT array_agg(event) FROM admission.job_history(:'j1')) @> '{settlement_conflict}', true, 'are in it');
SELECT is((SELECT count(*) FROM admission.job_history('00000000-0000-7000-8000-000000000000')), 0::bigint, 'of no job: nothing');
SELECT results_eq('SELECT at, kind, amount_micro, balance_micro, reference, (SELECT operation_key FROM admission.job_record j WHERE j.job_id = s.job_id) COLLATE "default" FROM admission.statement(''s'') s', $$VALUES
    ('2026-03-01 12:00:00+00'::timestamptz, 'top_up', 1000000::bigint, 1000000::bigint, 'buy-1', NULL),
    ('2026-03-01 12:01:30+00', 'capture', -90000, 910000, NULL, 'j1'),
    ('2026-03-01 12:01:32+00', 'refund', 40000, 950000, 'refund-1', 'j1')$$, 'the statement: every movement and the balance after it');
SELECT results_eq('SELECT kind, balance_micro FROM admission.statement(''s'', ''2026-03-01 12:01:30+00'', ''2026-03-01 12:01:32+00'')', $$VALUES ('capture', 910000::bigint)$$,
    'of a period: from since to before until');
SELECT is((SELECT balance_micro FROM admission.statement('s') WITH ORDINALITY ORDER BY ordinality DESC LIMIT 1), (admission.balance('s')).balance_micro, 'it ends with the balance');

-- tier_timeline
INSERT INTO admission.tenant (tenant) VALUES ('t');
SELECT is((admission.top_up('t', 90000000, 'manual', 't1')).code, 'recorded', '90 USD');
CALL pg_temp.later('24 hours');
SELECT is((admission.top_up('t', 30000000, 'manual', 't2')).code, 'recorded', '30 USD a day later');
SELECT is((admission.top_up('t', 5000000, 'manual', 't3')).code, 'recorded', 'and 5, reversed');
SELECT is((admission.reverse_top_up('t3', 5000000, 't3-back')).code, 'recorded', 'wholly');
SELECT results_eq('SELECT * FROM admission.tier_timeline(''t'')', $$VALUES
    ('t1', '2026-03-01 12:01:32+00'::timestamptz, 90000000::bigint, '2026-03-29 12:01:32+00'::timestamptz, 10, 70000000::bigint),
    ('t2', '2026-03-02 12:01:32+00', 30000000, '2026-03-30 12:01:32+00', 2, 100000000)$$,
    'each top-up, when it leaves, the limit then and what would keep today''s');
SELECT results_eq('SELECT reference, purchased_concurrency_limit, top_up_to_keep_micro FROM admission.tier_timeline(''t'', ''2026-03-29 12:01:32+00'')', $$VALUES ('t2', 2, 25000000::bigint)$$,
    'as of the moment the first has left');
SELECT is_empty('SELECT * FROM admission.tier_timeline(''nobody'')', 'nobody has none');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
