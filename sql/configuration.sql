-- Configuration: plain tables, edited with INSERT and UPDATE.
\set SHOW_CONTEXT never
BEGIN;
SET LOCAL DateStyle = 'ISO';
SET LOCAL IntervalStyle = 'postgres';
SET LOCAL TimeZone = 'UTC';
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

-- what CREATE EXTENSION brings
SELECT global_outstanding_cap, operation_key_max_length, operation_key_retention, top_up_window, queue_factor, queue_minimum, wave_fraction FROM admission.policy;
SELECT default_lease, default_start_within, max_attempts, credit_micro, log_rejections, late_completion, draining FROM admission.policy;
SELECT min_top_up_micro, concurrency FROM admission.concurrency_tier ORDER BY 1;
SELECT code, http_status, retryable, retry_key FROM admission.decision_code WHERE http_status IN (402, 429, 503) ORDER BY http_status, code;
SELECT count(*) AS tenants FROM admission.tenant;

-- a catalogue
INSERT INTO admission.model (model, provider) VALUES ('omni-flash', 'gemini'), ('imagine-1.5', 'grok');
INSERT INTO admission.price (model, match, unit_price_micro) VALUES
    ('omni-flash', '{"resolution": "720P"}', 100000),
    ('omni-flash', '{"resolution": "1080P"}', 150000);
INSERT INTO admission.price (model, unit, unit_price_micro, quantity_field, default_quantity, max_quantity) VALUES
    ('imagine-1.5', 'second', 22000, 'seconds', 6, 15);
INSERT INTO admission.tenant (tenant) VALUES ('studio');
SELECT * FROM admission.generation_limits('studio') \gx

-- what it costs
SELECT code, details -> 'quote' AS quote FROM admission.preview('studio', NULL, 'imagine-1.5', '{"seconds": 8}');
SELECT * FROM admission.top_up('studio', 25000000, 'manual', 'invoice 1') \gx
SELECT code, details -> 'quote' AS quote FROM admission.preview('studio', NULL, 'imagine-1.5', '{"seconds": 8}');
SELECT code, details -> 'quote' AS quote FROM admission.preview('studio', NULL, 'imagine-1.5', '{}');
SELECT code, details -> 'quote' AS quote FROM admission.preview('studio', NULL, 'omni-flash', '{"resolution": "1080P", "seconds": 8}');
SELECT code, message FROM admission.preview('studio', NULL, 'omni-flash', '{"resolution": "4K"}');

-- the top-up raised the tier; an override raises it further
SELECT limit_source, purchased_concurrency_limit, concurrency_limit, queued_jobs_limit, wave_size_hint FROM admission.generation_limits('studio');
UPDATE admission.tenant SET concurrency_override = 100, override_reason = 'launch', override_expires_at = '2026-03-08 12:00:00+00' WHERE tenant = 'studio';
SELECT limit_source, purchased_concurrency_limit, concurrency_limit, queued_jobs_limit, wave_size_hint FROM admission.generation_limits('studio');

-- a pause, and a model for some
UPDATE admission.model SET paused_until = '2026-03-01 12:10:00+00', pause_reason = 'provider down' WHERE model = 'omni-flash';
SELECT code, retry_after FROM admission.preview('studio', NULL, 'omni-flash', '{"resolution": "720P"}');
UPDATE admission.model SET paused_until = NULL, open_to_all = false WHERE model = 'omni-flash';
SELECT code FROM admission.preview('studio', NULL, 'omni-flash', '{"resolution": "720P"}');
INSERT INTO admission.model_access (model, tenant) VALUES ('omni-flash', 'studio');
SELECT code FROM admission.preview('studio', NULL, 'omni-flash', '{"resolution": "720P"}');

-- nonsense is refused when it is entered
SAVEPOINT s;
INSERT INTO admission.price (model, match, unit_price_micro) VALUES ('omni-flash', '{"audio": true}', 200000);
ROLLBACK TO s;
UPDATE admission.policy SET top_up_window = '28 days';
ROLLBACK TO s;
DELETE FROM admission.tenant;
ROLLBACK TO s;
DELETE FROM admission.policy;
ROLLBACK TO s;
UPDATE admission.billing SET amount_micro = 0;
ROLLBACK TO s;

SELECT * FROM admission.verify();
ROLLBACK;
