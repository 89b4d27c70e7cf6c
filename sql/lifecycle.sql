-- The life of a job: claimed, submitted, settled; given back, lost, unknown, expired.
BEGIN;
SET LOCAL DateStyle = 'ISO';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL TimeZone = 'UTC';
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';
INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity) VALUES ('clip', 'second', 10000, 'seconds', 5);
INSERT INTO admission.tenant (tenant) VALUES ('studio');
SELECT code FROM admission.top_up('studio', 10000000, 'manual', 'invoice 1');
SELECT code FROM admission.admit('studio', 'order 1', 'clip', '{"prompt": "a cat"}', '{"customer": 7}');
SELECT code FROM admission.admit('studio', 'order 2', 'clip', '{"seconds": 8}', start_within => '1 hour');
SELECT code FROM admission.admit('studio', 'order 3', 'clip', '{}', start_within => '1 hour');
SELECT job_id AS job1 FROM admission.status_of('studio', 'order 1') \gset
SELECT job_id AS job2 FROM admission.status_of('studio', 'order 2') \gset
SELECT job_id AS job3 FROM admission.status_of('studio', 'order 3') \gset

-- a worker takes a job, says so, calls the provider, says so
SELECT tenant, attempt, stage, model, provider, request, context, reserved_micro, start_by, lease_expires_at FROM admission.claim_next('worker 1');
SELECT code FROM admission.begin_submission(:'job1', 1);
SELECT code FROM admission.submitted(:'job1', 1, 'acme-1');
SELECT code FROM admission.heartbeat(:'job1', 1, '10 minutes');
SELECT operation_key, state, submission, attempt, provider_job_id, started_at FROM admission.job ORDER BY job_no;

-- a second worker gives its job back: to its old place, with the same hold
SELECT attempt, request FROM admission.claim_next('worker 2');
SELECT code FROM admission.requeue(:'job2', 1, reason => 'going down');
SELECT code FROM admission.begin_submission(:'job2', 1);
SELECT attempt, request FROM admission.claim_next('worker 2');

-- it dies: the lease runs out, the job is taken again; the dead one's word counts no more
SET LOCAL admission.test_clock = '2026-03-01 12:05:00+00';
SELECT * FROM admission.expire();
SELECT attempt, request FROM admission.claim_next('worker 3');
SELECT code FROM admission.settle(:'job2', 'completed', attempt => 2);

-- the answer of the provider is lost: unknown, until there is evidence
SELECT code FROM admission.begin_submission(:'job2', 3);
SELECT code FROM admission.report_unknown(:'job2', 3, 'read timeout');
SELECT code FROM admission.requeue(:'job2', 3);
SELECT operation_key, status, terminal, "position" FROM admission.list_jobs('studio');
SELECT count(*) AS claimed FROM admission.claim_next('worker 3');

-- the evidence, for both
SELECT code, details FROM admission.settle(NULL, 'completed', 50000, 'webhook 1', NULL, '{"public": {"url": "https://cdn.example/1.mp4"}}', 'acme-1');
SELECT code FROM admission.settle(NULL, 'completed', 50000, 'webhook 1', NULL, '{"public": {"url": "https://cdn.example/1.mp4"}}', 'acme-1');
SELECT code, details FROM admission.settle(:'job2', 'failed', result => '{"public": {"error": {"code": "nsfw", "message": "refused"}}}');

-- the third waited too long
SET LOCAL admission.test_clock = '2026-03-01 13:30:00+00';
SELECT count(*) AS claimed FROM admission.claim_next('worker 1');
SELECT operation_key, status, terminal, result_ready, result, error, reserved_micro, captured_micro FROM admission.list_jobs('studio');
SELECT code, details FROM admission.cancel('studio', :'job3');
SELECT at, event, attempt, details FROM admission.events('studio', :'job2');
SELECT at, event, attempt, worker, reason FROM admission.job_history(:'job2');
SELECT balance_micro, held_micro, available_micro FROM admission.balance('studio');

SELECT * FROM admission.verify();
ROLLBACK;
