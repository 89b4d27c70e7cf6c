-- Money: bought, held, captured, refunded, charged back.
BEGIN;
SET LOCAL DateStyle = 'ISO';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL TimeZone = 'UTC';
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';
INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 1000000);
SELECT code FROM admission.create_tenant('studio', 'pro');

-- in: once for each reference
SELECT code FROM admission.top_up('studio', 30000000, 'manual', 'invoice 1');
SELECT code FROM admission.top_up('studio', 30000000, 'manual', 'invoice 1');
SELECT code, http_status, retry_key FROM admission.top_up('studio', 40000000, 'manual', 'invoice 1');
SELECT code FROM admission.grant_credit('studio', 5000000, 'plan', 'pro, March');
SELECT * FROM admission.balance('studio');
SELECT purchased_concurrency_limit FROM admission.generation_limits('studio');

-- held, then captured or released
SELECT code FROM admission.admit_many('studio', (SELECT jsonb_agg(jsonb_build_object('operation_key', 'order ' || i, 'model', 'clip', 'request', '{}'::jsonb)) FROM generate_series(1, 4) i));
SELECT tenant, attempt, model, reserved_micro FROM admission.claim_next('worker 1', 4);
SELECT job_id AS job1 FROM admission.status_of('studio', 'order 1') \gset
SELECT job_id AS job2 FROM admission.status_of('studio', 'order 2') \gset
SELECT job_id AS job3 FROM admission.status_of('studio', 'order 3') \gset
SELECT job_id AS job4 FROM admission.status_of('studio', 'order 4') \gset
SELECT code, details FROM admission.settle(:'job1', 'completed', 800000);
SELECT code, details FROM admission.settle(:'job2', 'completed');
SELECT code, details FROM admission.settle(:'job3', 'failed');
SELECT code, details FROM admission.settle(:'job4', 'completed', 1500000);
SELECT code FROM admission.settle(:'job1', 'completed', 800000);
SELECT code FROM admission.settle(:'job1', 'failed');
SELECT j.operation_key, r.state, r.unit, r.quantity, r.unit_price_micro, r.held_micro, r.captured_micro, r.released_micro, r.unpriced
  FROM admission.reservation r JOIN admission.job j USING (job_id) ORDER BY 1;

-- back
SET LOCAL admission.test_clock = '2026-03-02 12:00:00+00';
SELECT code FROM admission.refund(:'job4', 500000, 'ticket 17', 'blurred');
SELECT code FROM admission.reverse_top_up('invoice 1', 10000000, 'chargeback 1', 'card stolen');
SELECT code FROM admission.adjust('studio', -200000, 'correction 1', 'counted twice');
SELECT purchased_concurrency_limit FROM admission.generation_limits('studio');

-- the books
SELECT at, kind, amount_micro, balance_micro, reference, reason FROM admission.statement('studio');
SELECT balance_micro, held_micro, available_micro FROM admission.balance('studio');
SELECT reference, counted_micro, leaves_at, purchased_concurrency_limit, top_up_to_keep_micro FROM admission.tier_timeline('studio');

SELECT * FROM admission.verify();
ROLLBACK;
