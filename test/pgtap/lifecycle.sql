-- The life of a job: every transition of the design's table, and the ones that must not happen.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider, max_attempts) VALUES ('clip', 'acme', NULL), ('frail', 'acme', 1), ('other', 'zeta', NULL);
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000), ('frail', 100000), ('other', 100000);

-- a tenant of its own for each story
CREATE PROCEDURE pg_temp.tenant(name text, concurrency integer DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO admission.tenant (tenant, concurrency_override) VALUES (name, concurrency);
    CALL pg_temp.fund(name, 10000000);
END $$;
CREATE FUNCTION pg_temp.take(tenant text, lease interval DEFAULT NULL) RETURNS text LANGUAGE sql
    AS $$ SELECT pg_temp.claim(1, ARRAY[$1], lease => $2) $$;
-- expired, requeued, failed, unknown, skipped
CREATE FUNCTION pg_temp.expire() RETURNS text LANGUAGE sql
    AS $$ SELECT concat_ws(' ', e.expired, e.requeued, e.failed, e.unknown, e.skipped) FROM admission.expire() e $$;

-- admit, claim_next, begin_submission, submitted, heartbeat, settle
CALL pg_temp.tenant('plain');
SELECT is((admission.admit('plain', 'p', 'clip', '{"prompt": "a cat"}', '{"customer": 7}', start_within => '1 hour')).code, 'accepted', 'admit: queued');
SELECT is(pg_temp.state('plain', 'p'), 'queued/0', 'no attempt yet');
SELECT is(pg_temp.reserved('plain', 'p'), 'held 100000 0 0', 'held');
SELECT pg_temp.job('plain', 'p') AS p \gset
CREATE TEMP TABLE claimed AS SELECT c.* FROM admission.claim_next('w1') c;
SELECT results_eq('SELECT * FROM claimed', format($$VALUES (%L::uuid, 'plain', 1, 'generation', 'clip', 'acme', '{"prompt": "a cat"}'::jsonb, '{"customer": 7}'::jsonb, 100000::bigint,
    '2026-03-01 13:00:00+00'::timestamptz, '2026-03-01 12:05:00+00'::timestamptz)$$, :'p'), 'claim_next: all a worker needs');
SELECT is(pg_temp.state('plain', 'p'), 'processing/none/1', 'processing, attempt 1');
SELECT is(pg_temp.load('plain'), '1 0', 'active');
SELECT is(pg_temp.brief(admission.begin_submission(:'p', 2)), 'stale_claim 409', 'begin_submission is fenced by the attempt');
SELECT is(pg_temp.brief(admission.begin_submission(:'p', 1)), 'submission_started 200', 'begin_submission');
SELECT is((admission.begin_submission(:'p', 1)).details -> 'repeated', 'true', 'again: repeated');
SELECT is(pg_temp.state('plain', 'p'), 'processing/started/1', 'started');
SELECT is(pg_temp.brief(admission.submitted(:'p', 1, 'acme-1')), 'submitted 200', 'submitted');
SELECT is((admission.submitted(:'p', 1, 'acme-1')).code, 'submitted', 'again');
SELECT is(pg_temp.state('plain', 'p'), 'processing/acknowledged/1', 'acknowledged');
SELECT is((SELECT provider_job_id FROM admission.job WHERE job_id = :'p'), 'acme-1', 'under the provider''s id');
CALL pg_temp.later('4 minutes');
SELECT is(pg_temp.brief(admission.heartbeat(:'p', 1)), 'lease_extended 200', 'heartbeat');
SELECT is((SELECT lease_expires_at FROM admission.processing WHERE job_id = :'p'), '2026-03-01 12:09:00+00'::timestamptz, 'the lease runs from now');
SELECT is((admission.heartbeat(:'p', 1, '1 hour')).code, 'lease_extended', 'heartbeat with a lease of its own');
SELECT is((SELECT lease_expires_at FROM admission.processing WHERE job_id = :'p'), '2026-03-01 13:04:00+00'::timestamptz, 'of that length');
SELECT is((admission.heartbeat(:'p', 2)).code, 'stale_claim', 'heartbeat of another attempt');
SELECT is((admission.settle(:'p', 'completed', 100000, attempt => 2)).code, 'stale_claim', 'settle of another attempt');
SELECT is(pg_temp.brief(admission.settle(:'p', 'completed', 100000, 'key', 1, '{"public": {"url": "x"}}')), 'settled 200', 'settle');
SELECT is(pg_temp.state('plain', 'p'), 'completed/1', 'completed');
SELECT is(pg_temp.reserved('plain', 'p'), 'captured 100000 100000 0', 'captured');
SELECT is(pg_temp.load('plain'), '0 0', 'not outstanding any more');
SELECT is((SELECT concat_ws(' ', started_at = '2026-03-01 12:00:00+00', finished_at = '2026-03-01 12:04:00+00') FROM admission.job WHERE job_id = :'p'), 't t', 'with its times');
SELECT is((admission.begin_submission(:'p', 1)).ok, false, 'nothing begins after the end');
SELECT is((admission.heartbeat(:'p', 1)).ok, false, 'nothing is extended');
SELECT is((admission.requeue(:'p', 1)).ok, false, 'nothing goes back');
SELECT is((admission.report_unknown(:'p', 1)).ok, false, 'nothing becomes unknown');
SELECT is(pg_temp.state('plain', 'p'), 'completed/1', 'completed it stays');

-- cancel
CALL pg_temp.tenant('cancel');
SELECT is((SELECT string_agg((admission.admit('cancel', 'c' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 3) i), 'accepted accepted accepted', 'three jobs');
SELECT is(pg_temp.take('cancel'), 'c1', 'one runs');
SELECT is(pg_temp.brief(admission.cancel('cancel', pg_temp.job('cancel', 'c2'))), 'canceled 200', 'cancel of a queued job');
SELECT is(pg_temp.reserved('cancel', 'c2'), 'released 100000 0 100000', 'releases');
SELECT is((SELECT string_agg(pg_temp.brief(admission.cancel('cancel', pg_temp.job('cancel', 'c2'))), ', ') FROM generate_series(1, 2) i), 'already_canceled 200, already_canceled 200', 'again and again');
SELECT is(pg_temp.money('cancel'), '10000000 200000 9800000', 'once');
SELECT is(pg_temp.brief(admission.cancel('cancel', pg_temp.job('cancel', 'c1'))), 'job_generation_already_started 409', 'not once it is processing');
SELECT is((admission.cancel('cancel', pg_temp.job('cancel', 'c1'))).details @> '{"cancelable": false, "state": "processing"}', true, 'and says so');
SELECT is((admission.requeue(pg_temp.job('cancel', 'c1'), 1)).code, 'requeued', 'given back');
SELECT is((admission.cancel('cancel', pg_temp.job('cancel', 'c1'))).code, 'canceled', 'it can be canceled');
SELECT is(pg_temp.take('cancel'), 'c3', 'the next runs');
SELECT is(pg_temp.settle('cancel', 'c3', 'completed', 100000), 'settled', 'to its end');
SELECT is((admission.cancel('cancel', pg_temp.job('cancel', 'c3'))).details @> '{"cancelable": false, "state": "completed"}', true, 'not once it has ended');
SELECT is(pg_temp.brief(admission.cancel('cancel', '00000000-0000-7000-8000-000000000000')), 'not_found 404', 'nor one that is none');
SELECT is(pg_temp.brief(admission.cancel('plain', pg_temp.job('cancel', 'c1'))), 'not_found 404', 'nor another tenant''s');
SELECT is(pg_temp.brief(admission.cancel('nobody', pg_temp.job('cancel', 'c1'))), 'unknown_tenant 401', 'nor anybody''s');
SELECT is(pg_temp.take('cancel'), NULL, 'a canceled job is not claimed');
SELECT is(pg_temp.load('cancel'), '0 0', 'nor outstanding');

-- requeue: before the submission freely, to the old place, with the same hold
CALL pg_temp.tenant('back', 1);
UPDATE admission.concurrency_tier SET concurrency = 1 WHERE min_top_up_micro = 0;
SELECT is((SELECT string_agg((admission.admit('back', 'b' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 3) i), 'accepted accepted accepted', 'three jobs, one at a time');
SELECT is(pg_temp.take('back'), 'b1', 'the first');
SELECT is(pg_temp.take('back'), NULL, 'no second beside it');
SELECT is(pg_temp.brief(admission.requeue(pg_temp.job('back', 'b1'), 1, reason => 'worker stops')), 'requeued 200', 'given back');
SELECT is(pg_temp.state('back', 'b1'), 'queued/1', 'queued');
SELECT is(pg_temp.reserved('back', 'b1'), 'held 100000 0 0', 'with the same hold');
SELECT is((admission.requeue(pg_temp.job('back', 'b1'), 1)).code, 'stale_claim', 'not twice');
SELECT is((admission.begin_submission(pg_temp.job('back', 'b1'), 1)).code, 'stale_claim', 'and no submission after that');
SELECT is(pg_temp.take('back'), 'b1', 'it stands first again');
SELECT is(pg_temp.state('back', 'b1'), 'processing/none/2', 'with a new attempt');
SELECT is((admission.begin_submission(pg_temp.job('back', 'b1'), 1)).code, 'stale_claim', 'the old attempt is dead');
SELECT is((SELECT string_agg((admission.requeue(pg_temp.job('back', 'b1'), i)).code || ' ' || pg_temp.take('back'), ' ') FROM generate_series(2, 9) i),
    'requeued b1 requeued b1 requeued b1 requeued b1 requeued b1 requeued b1 requeued b1 requeued b1', 'a requeue does not count towards max_attempts');
SELECT is((admission.begin_submission(pg_temp.job('back', 'b1'), 10)).code, 'submission_started', 'submission begins');
SELECT is(pg_temp.brief(admission.requeue(pg_temp.job('back', 'b1'), 10)), 'job_generation_already_started 409', 'after that not without not_received');
SELECT is(pg_temp.state('back', 'b1'), 'processing/started/10', 'it stays');
SELECT is((admission.requeue(pg_temp.job('back', 'b1'), 10, not_received => true)).code, 'requeued', 'with not_received it goes back');
SELECT is(pg_temp.take('back'), 'b1', 'to its old place');
SELECT is((admission.begin_submission(pg_temp.job('back', 'b1'), 11)).code, 'submission_started', 'submitted again');
SELECT is((admission.report_unknown(pg_temp.job('back', 'b1'), 11, 'timeout')).code, 'unknown_recorded', 'unknown');
SELECT is((admission.requeue(pg_temp.job('back', 'b1'), 11)).ok, false, 'unknown does not go back');
SELECT is((admission.requeue(pg_temp.job('back', 'b1'), 11, not_received => true)).code, 'requeued', 'but with not_received');
SELECT is(pg_temp.settle('back', 'b1', 'failed'), 'settled', 'evidence about a job that is queued again ends it');
SELECT is(pg_temp.state('back', 'b1'), 'failed/11', 'failed');
SELECT is(pg_temp.reserved('back', 'b1'), 'released 100000 0 100000', 'released');
SELECT is(pg_temp.take('back'), 'b2', 'the next');
SELECT is((admission.begin_submission(pg_temp.job('back', 'b2'), 1)).code, 'submission_started', 'begins');
SELECT is((admission.requeue(pg_temp.job('back', 'b2'), 1, '1 hour', 'busy', true)).code, 'requeued', 'is refused by the provider for now');
SELECT is(pg_temp.settle('back', 'b2', 'completed', 100000), 'settled', 'or so it seemed: a success for a delayed job ends it too');
SELECT is(pg_temp.reserved('back', 'b2'), 'captured 100000 100000 0', 'and is captured');
SELECT is((admission.settle(pg_temp.job('back', 'b3'), 'completed', 100000)).ok, false, 'a job that was never submitted has nothing to settle');
SELECT is(pg_temp.state('back', 'b3'), 'queued/0', 'it waits on');
SELECT is((admission.begin_submission(pg_temp.job('back', 'b3'), 0)).code, 'stale_claim', 'nor to submit');
SELECT is((admission.heartbeat(pg_temp.job('back', 'b3'), 1)).code, 'stale_claim', 'nor to extend');
UPDATE admission.concurrency_tier SET concurrency = 2 WHERE min_top_up_micro = 0;

-- requeue with a delay: nobody waits behind it (case 31)
CALL pg_temp.tenant('delay');
SELECT is((SELECT string_agg((admission.admit('delay', 'd' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 3) i), 'accepted accepted accepted', 'three jobs');
SELECT is(pg_temp.take('delay'), 'd1', 'the first');
SELECT is((admission.requeue(pg_temp.job('delay', 'd1'), 1, '24 hours')).code, 'requeued', 'delayed until tomorrow');
SELECT is(pg_temp.state('delay', 'd1'), 'queued/1', 'queued');
SELECT is(pg_temp.load('delay'), '0 3', 'and counted so');
SELECT is(pg_temp.take('delay'), 'd2', 'the one behind it runs now');
CALL pg_temp.later('23 hours 59 minutes 59.999999 seconds');
SELECT is(pg_temp.expire(), '0 1 0 0 0', 'tomorrow, almost: d2 was lost meanwhile');
SELECT is(pg_temp.take('delay'), 'd2', 'not d1 yet');
CALL pg_temp.later('1 microsecond');
SELECT is(pg_temp.take('delay'), 'd1', 'tomorrow: it stands before d3');
SELECT is(pg_temp.settle('delay', k, 'failed'), 'settled', k || ' ends') FROM unnest('{d1,d2}'::text[]) k;
SELECT is(pg_temp.take('delay'), 'd3', 'd3');
SELECT is((admission.requeue(pg_temp.job('delay', 'd3'), 1, '1 hour')).code, 'requeued', 'delayed');
SELECT is((admission.cancel('delay', pg_temp.job('delay', 'd3'))).code, 'canceled', 'a delayed job can be canceled');
CALL pg_temp.later('2 hours');
SELECT is(pg_temp.take('delay'), NULL, 'and does not come back');

-- case 26: lost before begin_submission
CALL pg_temp.tenant('lost');
SELECT is((SELECT string_agg((admission.admit('lost', 'l' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 2) i), 'accepted accepted', 'two jobs');
SELECT is(pg_temp.take('lost', '1 minute'), 'l1', 'a worker takes one and dies');
CALL pg_temp.later('59.999999 seconds');
SELECT is(pg_temp.expire(), '0 0 0 0 0', 'its lease lasts');
CALL pg_temp.later('1 microsecond');
SELECT is(pg_temp.expire(), '0 1 0 0 0', 'and ends');
SELECT is(pg_temp.state('lost', 'l1'), 'queued/1', 'the job is back');
SELECT is(pg_temp.reserved('lost', 'l1'), 'held 100000 0 0', 'with its hold');
SELECT is((admission.begin_submission(pg_temp.job('lost', 'l1'), 1)).code, 'stale_claim', 'the dead worker cannot submit any more');
SELECT is((admission.heartbeat(pg_temp.job('lost', 'l1'), 1)).code, 'stale_claim', 'nor extend');
SELECT is(pg_temp.take('lost', '1 minute'), 'l1', 'in its old place');
CALL pg_temp.later('1 minute');
SELECT is(pg_temp.take('lost', '1 minute'), 'l1', 'a claim does what expire would: the third attempt');
SELECT is(pg_temp.state('lost', 'l1'), 'processing/none/3', 'attempt 3');
CALL pg_temp.later('1 minute');
SELECT is(pg_temp.take('lost', '1 minute'), 'l2', 'lost three times: the next job''s turn');
SELECT is(pg_temp.state('lost', 'l1'), 'failed/3', 'the first has failed');
SELECT is(pg_temp.reserved('lost', 'l1'), 'released 100000 0 100000', 'and is released');
SELECT is((SELECT s.error ->> 'code' FROM admission.status('lost', pg_temp.job('lost', 'l1')) s), 'attempts_exhausted', 'with the reason');
SELECT is(pg_temp.money('lost'), '10000000 100000 9900000', 'released once');
SELECT is((admission.cancel('lost', pg_temp.job('lost', 'l1'))).details ->> 'state', 'failed', 'it cannot be canceled');
SELECT is((admission.settle(pg_temp.job('lost', 'l1'), 'completed', 100000)).code, 'late_completion', 'a success for it comes too late');
CALL pg_temp.later('1 minute');
SELECT is(pg_temp.expire(), '0 1 0 0 0', 'the second job is lost once');
SELECT is(pg_temp.expire(), '0 0 0 0 0', 'expire again finds nothing');
CALL pg_temp.tenant('frail');
SELECT is((admission.admit('frail', 'f', 'frail', '{}')).code, 'accepted', 'a model with max_attempts 1');
SELECT is(pg_temp.take('frail'), 'f', 'claimed');
CALL pg_temp.later('5 minutes');
SELECT is(pg_temp.expire(), '0 0 1 0 0', 'fails at the first loss');
SELECT is(pg_temp.state('frail', 'f'), 'failed/1', 'failed');

-- case 25: a lost claim does not come back to life
CALL pg_temp.tenant('fence');
SELECT is((admission.admit('fence', 'f', 'clip', '{}')).code, 'accepted', 'a job');
UPDATE admission.policy SET max_attempts = 100;
CREATE FUNCTION pg_temp.fenced(i integer) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    taken text := pg_temp.take('fence', '1 minute');
    job_id uuid := pg_temp.job('fence', 'f');
BEGIN
    CALL pg_temp.later('1 minute');
    PERFORM admission.expire();
    RETURN concat_ws(' ', taken, pg_temp.take('fence', '1 minute'), (admission.settle(job_id, 'completed', 1, attempt => 2 * i - 1)).code, pg_temp.load('fence'),
        (admission.requeue(job_id, 2 * i)).code, (admission.settle(job_id, 'completed', 1, attempt => 2 * i)).code, pg_temp.load('fence'));
END $$;
SELECT is((SELECT string_agg(DISTINCT pg_temp.fenced(i), ', ') FROM generate_series(1, 20) i), 'f f stale_claim 1 0 requeued stale_claim 0 1', 'twenty rounds of lost leases');
SELECT is((SELECT count(*) FROM admission.evidence WHERE job_id = pg_temp.job('fence', 'f') AND code = 'stale_claim'), 40::bigint, 'the stale reports are kept as evidence');
SELECT is(pg_temp.money('fence'), '10000000 100000 9900000', 'no money moved');
UPDATE admission.policy SET max_attempts = 3;

-- lost after begin_submission: unknown, hold and slot kept until there is evidence (case 27)
CALL pg_temp.tenant('unknown');
SELECT is((SELECT string_agg((admission.admit('unknown', 'u' || i, 'clip', '{}')).code, ' ') FROM generate_series(1, 4) i), 'accepted accepted accepted accepted', 'four jobs, two at a time');
SELECT is(pg_temp.take('unknown'), 'u1', 'one runs');
SELECT is(pg_temp.take('unknown'), 'u2', 'and another');
SELECT is((admission.begin_submission(pg_temp.job('unknown', 'u1'), 1)).code, 'submission_started', 'started');
SELECT is((admission.begin_submission(pg_temp.job('unknown', 'u2'), 1)).code, 'submission_started', 'started');
SELECT is((admission.submitted(pg_temp.job('unknown', 'u2'), 1, 'acme-u2')).code, 'submitted', 'acknowledged');
CALL pg_temp.later('5 minutes');
SELECT is(pg_temp.expire(), '0 0 0 1 0', 'both leases run out, one job becomes unknown');
SELECT is(pg_temp.state('unknown', 'u1'), 'processing/unknown/1', 'the one that was started');
SELECT is(pg_temp.state('unknown', 'u2'), 'processing/acknowledged/1', 'the acknowledged one stays so');
SELECT is(pg_temp.load('unknown'), '2 2', 'both keep their slots');
SELECT is(pg_temp.take('unknown'), NULL, 'nothing starts beside them');
CALL pg_temp.later('10000 hours');
SELECT is(pg_temp.expire(), '0 0 0 0 0', 'time proves nothing');
SELECT is(pg_temp.take('unknown'), NULL, 'however long');
SELECT is(pg_temp.reserved('unknown', 'u1'), 'held 100000 0 0', 'the hold is kept');
SELECT is((admission.cancel('unknown', pg_temp.job('unknown', 'u1'))).code, 'job_generation_already_started', 'unknown cannot be canceled');
SELECT is((admission.submitted(pg_temp.job('unknown', 'u1'), 1, 'acme-u2')).code, 'settlement_conflict', 'the id of another job is refused');
SELECT is((admission.submitted(pg_temp.job('unknown', 'u1'), 1, 'acme-u1')).code, 'submitted', 'the provider is heard of: acknowledged');
SELECT is(pg_temp.state('unknown', 'u1'), 'processing/acknowledged/1', 'acknowledged');
SELECT is((admission.settle(NULL, 'completed', 60000, provider_job_id => 'acme-u1')).code, 'settled', 'a webhook settles by the provider''s id, without an attempt');
SELECT is(pg_temp.reserved('unknown', 'u1'), 'captured 100000 60000 40000', 'captured then');
SELECT is((admission.settle(NULL, 'completed', 60000, provider_job_id => 'acme-u1')).code, 'already_settled', 'delivered twice');
SELECT is(pg_temp.settle('unknown', 'u2', 'failed'), 'settled', 'the other fails');
SELECT is(pg_temp.take('unknown'), 'u3', 'the slots are free');
SELECT is((admission.begin_submission(pg_temp.job('unknown', 'u3'), 1)).code, 'submission_started', 'started');
SELECT is(pg_temp.brief(admission.report_unknown(pg_temp.job('unknown', 'u3'), 1, 'read timeout')), 'unknown_recorded 200', 'a timeout is reported');
SELECT is((admission.report_unknown(pg_temp.job('unknown', 'u3'), 1, 'read timeout')).code, 'unknown_recorded', 'again');
SELECT is((admission.report_unknown(pg_temp.job('unknown', 'u3'), 2)).code, 'stale_claim', 'by another attempt');
SELECT is(pg_temp.state('unknown', 'u3'), 'processing/unknown/1', 'unknown');
SELECT is((admission.begin_submission(pg_temp.job('unknown', 'u3'), 1)).ok, false, 'it is not submitted again');
SELECT is(pg_temp.state('unknown', 'u3'), 'processing/unknown/1', 'still unknown');
SELECT is(pg_temp.settle('unknown', 'u3', 'completed', 100000), 'settled', 'a settlement is evidence');
SELECT is((admission.settle(NULL, 'completed', 1, provider_job_id => 'acme-none')).ok, false, 'an id nobody knows settles nothing');
SELECT is((SELECT count(*) FROM admission.claim_next('w', 1, tenants => '{unknown}', begin => true)), 1::bigint, 'claim and begin at once');
SELECT is(pg_temp.state('unknown', 'u4'), 'processing/started/1', 'started');
SELECT is((admission.requeue(pg_temp.job('unknown', 'u4'), 1)).code, 'job_generation_already_started', 'so a requeue needs not_received');
SELECT is(pg_temp.settle('unknown', 'u4', 'failed'), 'settled', 'it fails');

-- deadlines: start_within, by expire and by the claim that meets it (case 30)
CALL pg_temp.tenant('deadline');
SELECT is((SELECT string_agg((admission.admit('deadline', 'd' || i, 'clip', '{}', start_within => '10 minutes')).code, ' ') FROM generate_series(1, 4) i), 'accepted accepted accepted accepted', 'four jobs that must start within 10 minutes');
SELECT is((admission.admit('deadline', 'd5', 'clip', '{}')).code, 'accepted', 'and one that need not');
SELECT is((SELECT start_by - created_at FROM admission.job WHERE tenant = 'deadline' AND operation_key = 'd1'), '10 minutes'::interval, 'start_by');
SELECT is((SELECT start_by FROM admission.job WHERE tenant = 'deadline' AND operation_key = 'd5'), NULL, 'no start_by');
SELECT is(pg_temp.take('deadline', '20 minutes'), 'd1', 'one starts in time');
SELECT is(pg_temp.take('deadline', '20 minutes'), 'd2', 'another');
SELECT is((admission.begin_submission(pg_temp.job('deadline', 'd2'), 1)).code, 'submission_started', 'and is submitted');
CALL pg_temp.later('9 minutes 59.999999 seconds');
SELECT is(pg_temp.expire(), '0 0 0 0 0', 'not yet');
CALL pg_temp.later('10 minutes');
UPDATE admission.tenant SET concurrency_override = 3 WHERE tenant = 'deadline';
SELECT is(pg_temp.take('deadline'), 'd5', 'expire has not run: the claim passes over what is too late');
SELECT is(pg_temp.state('deadline', 'd3'), 'expired/0', 'expired by the claim that met it');
SELECT is(pg_temp.reserved('deadline', 'd3'), 'released 100000 0 100000', 'released');
SELECT is(pg_temp.state('deadline', 'd4'), 'expired/0', 'the other too');
SELECT is(pg_temp.expire(), '0 0 0 0 0', 'nothing is left for expire');
SELECT is(pg_temp.state('deadline', 'd1'), 'processing/none/1', 'what has started runs on');
CALL pg_temp.later('1 second');
SELECT is(pg_temp.expire(), '1 0 0 1 0', 'leases lost after the deadline');
SELECT is(pg_temp.state('deadline', 'd1'), 'expired/1', 'not submitted: expired, not back in the queue');
SELECT is(pg_temp.state('deadline', 'd2'), 'processing/unknown/1', 'submitted: unknown');
SELECT is((admission.cancel('deadline', pg_temp.job('deadline', 'd3'))).details ->> 'state', 'expired', 'an expired job cannot be canceled');
SELECT is((admission.admit('deadline', 'd6', 'clip', '{}', start_within => '10 minutes')).code, 'accepted', 'another');
SELECT is(pg_temp.settle('deadline', 'd5', 'failed'), 'settled', 'room');
SELECT is(pg_temp.take('deadline', '20 minutes'), 'd6', 'starts in time');
CALL pg_temp.later('11 minutes');
SELECT is((admission.requeue(pg_temp.job('deadline', 'd6'), 1)).details ->> 'state', 'expired', 'given back after its start_by: expires');
SELECT is(pg_temp.state('deadline', 'd6'), 'expired/1', 'expired');
SELECT is(pg_temp.money('deadline'), '10000000 100000 9900000', 'only the unknown one is held');
UPDATE admission.policy SET default_start_within = '1 minute';
SELECT is((admission.admit('deadline', 'd7', 'clip', '{}')).code, 'accepted', 'the policy may set a default');
SELECT is((admission.admit('deadline', 'd8', 'clip', '{}', start_within => '1 hour')).code, 'accepted', 'that the caller may change');
CALL pg_temp.later('2 minutes');
SELECT is(pg_temp.expire(), '1 0 0 0 0', 'one expires');
SELECT is(pg_temp.state('deadline', 'd7'), 'expired/0', 'the one with the default');
SELECT is(pg_temp.state('deadline', 'd8'), 'queued/0', 'not the other');
UPDATE admission.policy SET default_start_within = NULL;

-- expire works in bounded batches
CALL pg_temp.tenant('batch');
SELECT is((SELECT string_agg(DISTINCT (admission.admit('batch', 'b' || i, 'clip', '{}', start_within => '1 minute')).code, ' ') FROM generate_series(1, 10) i), 'accepted', 'ten jobs');
CALL pg_temp.later('1 hour');
SELECT is((SELECT string_agg((admission.expire(4)).expired::text, ' ') FROM generate_series(1, 4)), '4 4 3 0', 'four at a time: these and d8');

-- case 32: a pause stops claims, and outlives other edits
CALL pg_temp.tenant('pause');
SELECT is((admission.admit('pause', 'p1', 'clip', '{}')).code, 'accepted', 'a job');
UPDATE admission.model SET paused_until = admission.clock() + '1 hour' WHERE model = 'clip';
SELECT is(pg_temp.take('pause'), NULL, 'paused');
UPDATE admission.tenant SET concurrency_override = 50 WHERE tenant = 'pause';
UPDATE admission.concurrency_tier SET concurrency = concurrency + 1;
UPDATE admission.policy SET global_outstanding_cap = 1000;
SELECT is((admission.top_up('pause', 25000000, 'manual', 'pause-1')).code, 'recorded', 'limits, tiers, caps and money change');
SELECT is(pg_temp.take('pause'), NULL, 'still paused');
SELECT is((admission.admit('pause', 'p2', 'clip', '{}')).code, 'provider_capacity_exceeded', 'and nothing is admitted');
CALL pg_temp.later('1 hour');
SELECT is(pg_temp.take('pause'), 'p1', 'until it is over, by time alone');
UPDATE admission.policy SET draining = true;
SELECT is((admission.admit('pause', 'p3', 'clip', '{}')).code, 'accepted', 'draining: admitting goes on');
SELECT is(pg_temp.take('pause'), NULL, 'dispatch does not');
SELECT is(pg_temp.settle('pause', 'p1', 'completed', 100000), 'settled', 'settlements do');
UPDATE admission.policy SET draining = false;
SELECT is(pg_temp.take('pause'), 'p3', 'draining over');
UPDATE admission.tenant SET suspended_at = admission.clock() WHERE tenant = 'pause';
SELECT is((admission.settle(pg_temp.job('pause', 'p3'), 'failed')).code, 'settled', 'suspended: running jobs run on');
UPDATE admission.tenant SET suspended_at = NULL WHERE tenant = 'pause';
SELECT is((admission.admit('pause', 'p4', 'clip', '{}')).code, 'accepted', 'a job');
UPDATE admission.tenant SET suspended_at = admission.clock() WHERE tenant = 'pause';
SELECT is(pg_temp.take('pause'), NULL, 'suspended: queued jobs wait');
UPDATE admission.tenant SET suspended_at = NULL WHERE tenant = 'pause';
SELECT is(pg_temp.take('pause'), 'p4', 'and go on');

-- case 46, serial part: limit 2, one running, queue empty; the running one is requeued
CALL pg_temp.tenant('idle');
SELECT is((admission.admit('idle', 'i1', 'clip', '{}')).code, 'accepted', 'a job');
SELECT is(pg_temp.take('idle'), 'i1', 'runs');
SELECT is((SELECT count(pg_temp.take('idle')) FROM generate_series(1, 3)), 0::bigint, 'nothing else is there: the tenant is taken off the ring');
SELECT is((admission.requeue(pg_temp.job('idle', 'i1'), 1)).code, 'requeued', 'given back');
SELECT is(pg_temp.take('idle'), 'i1', 'and claimed again');
CALL pg_temp.later('1 hour');
SELECT is(pg_temp.take('idle'), 'i1', 'lost and claimed again, by claims alone');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
