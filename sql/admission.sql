-- Admission: one decision for each request, in the caller's own transaction.
BEGIN;
SET LOCAL DateStyle = 'ISO';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL TimeZone = 'UTC';
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';
INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant, queued_jobs_override) VALUES ('studio', 0);
SELECT code FROM admission.top_up('studio', 300000, 'manual', 'invoice 1');

-- accepted: the money is held
SELECT ok, code, http_status, retryable, retry_key, reserved_micro, details, job_id IS NOT NULL AS job
  FROM admission.admit('studio', 'order 1', 'clip', '{"prompt": "a cat"}', '{"customer": 7}');
SELECT balance_micro, held_micro, available_micro, available_usd, available_credits FROM admission.balance('studio');

-- the same again is a replay, whatever the order of its fields; another request under the key is not
SELECT ok, code, http_status, reserved_micro FROM admission.admit('studio', 'order 1', 'clip', '{ "prompt":"a cat" }');
SELECT ok, code, http_status, retry_key FROM admission.admit('studio', 'order 1', 'clip', '{"prompt": "a dog"}');

-- a caller that wants less than it could get
SELECT code FROM admission.admit('studio', 'order 2', 'clip', '{}', max_cost_micro => 99999);
SELECT code FROM admission.admit('studio', 'order 2', 'clip', '{}', max_ahead => 0);

-- full
SELECT code FROM admission.admit('studio', 'order 2', 'clip', '{}', priority => 5::smallint, start_within => '1 hour');
SELECT code, http_status, retryable, retry_key, retry_after > '0' AS later, limits FROM admission.admit('studio', 'order 3', 'clip', '{}');
SELECT f ->> 'gate' AS gate, f ->> 'limit' AS "limit", f ->> 'used' AS used, f ->> 'needed' AS needed
  FROM admission.admit('studio', 'order 3', 'clip', '{}') d, jsonb_array_elements(d.details -> 'failed') f;

-- no money
UPDATE admission.tenant SET queued_jobs_override = NULL;
SELECT code FROM admission.admit('studio', 'order 3', 'clip', '{}');
SELECT code, http_status, details - 'failed' AS details FROM admission.admit('studio', 'order 4', 'clip', '{}');

-- the rest of the house
SELECT code, http_status FROM admission.admit('nobody', 'order 1', 'clip', '{}');
SELECT code, http_status FROM admission.admit('studio', 'order 4', 'film', '{}');
SELECT code, http_status, details FROM admission.admit('studio', 'order 4', 'clip', '[]');

-- many at once
SELECT code, reserved_micro, (limits).queued_generation_jobs FROM admission.admit_many('studio',
    '[{"operation_key": "order 3", "model": "clip", "request": {}}, {"operation_key": "order 4", "model": "clip", "request": {}}]');

-- what waits, in the order in which it will be claimed
SELECT operation_key, status, "position", position_exact, reserved_micro, start_by FROM admission.list_jobs('studio') ORDER BY "position";
SELECT code FROM admission.cancel('studio', (SELECT job_id FROM admission.status_of('studio', 'order 2')));
SELECT code FROM admission.cancel('studio', (SELECT job_id FROM admission.status_of('studio', 'order 2')));
SELECT operation_key, status, "position" FROM admission.list_jobs('studio') ORDER BY "position";
SELECT code FROM admission.cancel_queued('studio', '{"customer": 7}');
SELECT code, count(*) FROM admission.rejection GROUP BY code ORDER BY code;

-- the caller's transaction rolls back: nothing happened
SAVEPOINT caller;
SELECT code FROM admission.admit('studio', 'order 5', 'clip', '{}');
ROLLBACK TO caller;
SELECT held_micro FROM admission.balance('studio');
SELECT admission.status_of('studio', 'order 5') IS NULL AS gone;

SELECT * FROM admission.verify();
ROLLBACK;
