-- Tiers: which top-ups count, for exactly how long, and what a change of tier does to jobs.
BEGIN;
\ir setup.psql
SELECT * FROM no_plan();
SET LOCAL admission.test_clock = '2026-03-01 12:00:00+00';

INSERT INTO admission.model (model, provider) VALUES ('clip', 'acme');
INSERT INTO admission.price (model, unit_price_micro) VALUES ('clip', 100000);
INSERT INTO admission.tenant (tenant) VALUES ('t'), ('edge'), ('sum'), ('gift'), ('fall'), ('case47'), ('tier100'), ('tier1000'), ('zones'), ('leap');

CREATE FUNCTION pg_temp.tier(tenant text) RETURNS integer LANGUAGE sql AS $$ SELECT purchased_concurrency_limit FROM admission.generation_limits($1) $$;

-- thresholds
SELECT is(pg_temp.tier('t'), 2, 'nothing bought: 2');
SELECT is((admission.top_up('t', 24999999, 'manual', 't1')).code, 'recorded', '24.999999 USD');
SELECT is(pg_temp.tier('t'), 2, 'are not enough');
SELECT is((admission.top_up('t', 1, 'auto', 't2')).code, 'recorded', 'a micro-USD more, bought automatically');
SELECT is(pg_temp.tier('t'), 10, '25 USD: 10, reached exactly');
SELECT is((admission.top_up('t', 74999999, 'manual', 't3')).code, 'recorded', 'up to 99.999999');
SELECT is(pg_temp.tier('t'), 10, 'still 10');
SELECT is((admission.top_up('t', 1, 'manual', 't4')).code, 'recorded', '100 USD');
SELECT is(pg_temp.tier('t'), 20, '20');
SELECT is((admission.top_up('t', 899999999, 'manual', 't5')).code, 'recorded', 'up to 999.999999');
SELECT is(pg_temp.tier('t'), 20, 'still 20');
SELECT is((admission.top_up('t', 1, 'manual', 't6')).code, 'recorded', '1000 USD');
SELECT is(pg_temp.tier('t'), 40, '40');
SELECT is(to_jsonb(admission.generation_limits('t')),
    '{"plan_id": null, "limit_source": "plan", "purchased_concurrency_limit": 40, "concurrency_limit": 40, "queued_jobs_limit": 200, "accepted_generation_jobs_limit": 240,
      "active_generation_jobs": 0, "queued_generation_jobs": 0, "queue_capacity_remaining": 240, "wave_size_hint": 180, "new_job_budget": 40}', 'the limits of the highest tier');

-- case 15: the window's edge, in several session zones, over a change to daylight saving
SELECT is((admission.top_up('edge', 25000000, 'manual', 'e1')).code, 'recorded', 'bought at noon UTC on 1 March');
SET LOCAL admission.test_clock = '2026-03-29 11:59:59.999999+00';
SET LOCAL TimeZone = 'UTC';
SELECT is(pg_temp.tier('edge'), 10, '672 h less 1 us later it counts (UTC)');
SET LOCAL TimeZone = 'Asia/Kolkata';
SELECT is(pg_temp.tier('edge'), 10, 'Asia/Kolkata');
SET LOCAL TimeZone = 'America/New_York';
SELECT is(pg_temp.tier('edge'), 10, 'America/New_York, where an hour is missing in between');
SET LOCAL TimeZone = 'Europe/Berlin';
SELECT is(pg_temp.tier('edge'), 10, 'Europe/Berlin, where an hour was missing this night');
SET LOCAL admission.test_clock = '2026-03-29 12:00:00+00';
SELECT is(pg_temp.tier('edge'), 2, '672 h later it does not (Europe/Berlin)');
SET LOCAL TimeZone = 'America/New_York';
SELECT is(pg_temp.tier('edge'), 2, 'America/New_York');
SET LOCAL TimeZone = 'Asia/Kolkata';
SELECT is(pg_temp.tier('edge'), 2, 'Asia/Kolkata');
SET LOCAL TimeZone = 'UTC';
SELECT is(pg_temp.tier('edge'), 2, 'UTC');
SELECT is(pg_temp.money('edge'), '25000000 0 25000000', 'the money stays');
SELECT is(pg_temp.tier('t'), 2, 'all of the first tenant''s left at the same time');

-- a sum of top-ups loses them one by one
SELECT is((admission.top_up('sum', 80000000, 'manual', 's1')).code, 'recorded', '80 USD');
CALL pg_temp.later('100 hours');
SELECT is((admission.top_up('sum', 20000000, 'auto', 's2')).code, 'recorded', 'and 20 USD 100 h later');
SELECT is(pg_temp.tier('sum'), 20, 'together 100 USD');
CALL pg_temp.later('571 hours 59 minutes 59.999999 seconds');
SELECT is(pg_temp.tier('sum'), 20, 'until the first leaves');
CALL pg_temp.later('1 microsecond');
SELECT is(pg_temp.tier('sum'), 2, 'then 20 USD are left');
SELECT is((admission.top_up('sum', 5000000, 'auto', 's3')).code, 'recorded', 'and with 5 more');
SELECT is(pg_temp.tier('sum'), 10, '25 USD');
CALL pg_temp.later('100 hours');
SELECT is(pg_temp.tier('sum'), 2, 'until the second leaves');

-- the window is a setting
UPDATE admission.policy SET top_up_window = '100 hours';
SELECT is(pg_temp.tier('sum'), 2, 'bought exactly 100 h ago: out');
SELECT is((admission.top_up('sum', 25000000, 'auto', 's4')).code, 'recorded', '25 USD now');
CALL pg_temp.later('99 hours');
SELECT is(pg_temp.tier('sum'), 10, 'in');
UPDATE admission.policy SET top_up_window = '99 hours';
SELECT is(pg_temp.tier('sum'), 2, 'a shorter window counts at once');
SELECT throws_ok($$UPDATE admission.policy SET top_up_window = '28 days'$$, '22023', NULL, 'days are refused: they move with daylight saving');
SELECT throws_ok($$UPDATE admission.policy SET top_up_window = '1 month'$$, '22023', NULL, 'so are months');
SELECT throws_ok($$UPDATE admission.policy SET top_up_window = '0 hours'$$, '23514', NULL, 'and nothing');
UPDATE admission.policy SET top_up_window = '672 hours';

-- 29 February
SET LOCAL admission.test_clock = '2028-02-01 12:00:00+00';
SELECT is((admission.top_up('leap', 25000000, 'manual', 'l1')).code, 'recorded', 'bought on 1 February of a leap year');
SET LOCAL admission.test_clock = '2028-02-29 11:59:59.999999+00';
SELECT is(pg_temp.tier('leap'), 10, 'in');
SET LOCAL admission.test_clock = '2028-02-29 12:00:00+00';
SELECT is(pg_temp.tier('leap'), 2, 'out on the 29th');
SELECT is((admission.top_up('leap', 25000000, 'manual', 'l2')).code, 'recorded', 'bought on the 29th');
SET LOCAL admission.test_clock = '2028-03-28 11:59:59.999999+00';
SELECT is(pg_temp.tier('leap'), 10, 'in');
SET LOCAL admission.test_clock = '2028-03-28 12:00:00+00';
SELECT is(pg_temp.tier('leap'), 2, 'out');

-- case 17: what is not bought does not count
SELECT is((admission.grant_credit('gift', 1000000000, 'plan', 'g1')).code, 'recorded', 'plan credit of 1000 USD');
SELECT is((admission.grant_credit('gift', 1000000000, 'grant', 'g2')).code, 'recorded', 'a grant of 1000 USD');
SELECT is((admission.adjust('gift', 1000000000, 'g3')).code, 'recorded', 'a correction of 1000 USD');
SELECT is(pg_temp.money('gift'), '3000000000 0 3000000000', 'all of it can be spent');
SELECT is(pg_temp.tier('gift'), 2, 'the tier stays');
SELECT is((admission.admit('gift', 'j', 'clip', '{}')).code, 'accepted', 'a job');
SELECT is(pg_temp.claim(1, ARRAY['gift']), 'j', 'runs');
SELECT is(pg_temp.settle('gift', 'j', 'completed', 100000), 'settled', 'and ends');
SELECT is((admission.refund(pg_temp.job('gift', 'j'), 100000, 'g4', 'blurred')).code, 'recorded', 'and is refunded');
SELECT is(pg_temp.money('gift'), '3000000000 0 3000000000', 'balance up');
SELECT is(pg_temp.tier('gift'), 2, 'the tier untouched');
SELECT is((admission.top_up('gift', 25000000, 'manual', 'g5')).code, 'recorded', 'a purchase');
SELECT is(pg_temp.tier('gift'), 10, 'counts');
SELECT is((admission.adjust('gift', -3025000000, 'g6')).code, 'recorded', 'spending or taking the money');
SELECT is(pg_temp.tier('gift'), 10, 'does not touch the tier');

-- case 18 and the rest of 17: a chargeback, jobs running
SELECT is((admission.top_up('fall', 25000000, 'manual', 'f1')).code, 'recorded', '25 USD bought');
SELECT is((SELECT string_agg(DISTINCT (admission.admit('fall', 'f' || lpad(i::text, 2, '0'), 'clip', '{}')).code, ' ') FROM generate_series(1, 12) i), 'accepted', 'twelve jobs in');
SELECT is(pg_temp.claim(5, ARRAY['fall']), 'f01 f02 f03 f04 f05', 'five of them run');
SELECT is((admission.reverse_top_up('f1', 25000000, 'f1-back', 'chargeback')).code, 'recorded', 'the payment is charged back');
SELECT is(pg_temp.tier('fall'), 2, 'the tier falls');
SELECT is(pg_temp.money('fall'), '0 1200000 -1200000', 'the balance too, and what is available below zero');
SELECT is(pg_temp.load('fall'), '5 7', 'running and accepted jobs stay');
SELECT is((admission.generation_limits('fall')).queue_capacity_remaining, 0, 'capacity is never shown below zero');
SELECT is((admission.generation_limits('fall')).new_job_budget, 0, 'nor is the budget');
SELECT is((admission.generation_limits('fall')).wave_size_hint, 0, 'nor the wave');
SELECT is(pg_temp.failed(admission.admit('fall', 'f13', 'clip', '{}')), 'queue_full insufficient_credits', 'nothing new enters');
SELECT is(pg_temp.claim(10, ARRAY['fall']), NULL, 'nothing new starts');
SELECT is(pg_temp.settle('fall', 'f01', 'completed', 100000), 'settled', 'one ends');
SELECT is(pg_temp.settle('fall', 'f02', 'failed'), 'settled', 'another');
SELECT is(pg_temp.settle('fall', 'f03', 'failed'), 'settled', 'and one more: two run');
SELECT is(pg_temp.claim(10, ARRAY['fall']), NULL, 'still nothing starts at the new limit');
SELECT is(pg_temp.settle('fall', 'f04', 'failed'), 'settled', 'one runs');
SELECT is(pg_temp.claim(10, ARRAY['fall']), 'f06', 'below it one starts, though the money is gone: it was held');
UPDATE admission.tenant SET concurrency_override = 4 WHERE tenant = 'fall';
SELECT is(pg_temp.claim(10, ARRAY['fall']), 'f07 f08', 'an override starts waiting jobs at once');
SELECT is((admission.top_up('fall', 25000000, 'manual', 'f2')).code, 'recorded', 'so does a top-up');
SELECT is(pg_temp.claim(10, ARRAY['fall']), 'f09 f10 f11 f12', 'all that wait');

-- partial reversals
SELECT is((admission.top_up('tier100', 100000000, 'manual', 'r1')).code, 'recorded', '100 USD');
SELECT is((admission.reverse_top_up('r1', 1, 'r1-a')).code, 'recorded', 'less one micro-USD');
SELECT is(pg_temp.tier('tier100'), 10, 'is not 100 any more');
SELECT is((admission.reverse_top_up('r1', 75000000, 'r1-b')).code, 'recorded', 'less 75 USD');
SELECT is(pg_temp.tier('tier100'), 2, '24.999999');
SELECT is((admission.top_up('tier100', 1, 'manual', 'r2')).code, 'recorded', 'one micro-USD');
SELECT is(pg_temp.tier('tier100'), 10, 'makes 25');
SELECT is(pg_temp.money('tier100'), '25000000 0 25000000', 'the balance likewise');

-- case 47: reversals leave the window with what they reverse
SET LOCAL admission.test_clock = '2030-01-01 00:00:00+00';
SELECT is((admission.top_up('case47', 100000000, 'manual', 'c1')).code, 'recorded', 'day 0: 100 USD');
CALL pg_temp.later('480 hours');
SELECT is((admission.reverse_top_up('c1', 100000000, 'c1-back')).code, 'recorded', 'day 20: charged back');
SELECT is(pg_temp.tier('case47'), 2, 'nothing counts');
CALL pg_temp.later('24 hours');
SELECT is((admission.top_up('case47', 100000000, 'manual', 'c2')).code, 'recorded', 'day 21: 100 USD');
SELECT is(pg_temp.tier('case47'), 20, 'that of 100');
CALL pg_temp.later('168 hours');
SELECT is(pg_temp.tier('case47'), 20, 'day 28: the first top-up and its reversal leave, nothing changes');
CALL pg_temp.later('24 hours');
SELECT is(pg_temp.tier('case47'), 20, 'day 29: that of 100');
SELECT is((admission.top_up('case47', 1, 'auto', 'c3')).code, 'recorded', 'another micro-USD');
CALL pg_temp.later('480 hours');
SELECT is(pg_temp.tier('case47'), 2, 'day 49: out');

-- editing the tiers
SELECT is((admission.top_up('tier1000', 1000000000, 'manual', 'm1')).code, 'recorded', '1000 USD');
UPDATE admission.concurrency_tier SET concurrency = 50 WHERE min_top_up_micro = 1000000000;
SELECT is(pg_temp.tier('tier1000'), 50, 'an edited tier counts at once');
DELETE FROM admission.concurrency_tier WHERE min_top_up_micro = 1000000000;
SELECT is(pg_temp.tier('tier1000'), 20, 'a deleted one no more');
INSERT INTO admission.concurrency_tier VALUES (500000000, 33);
SELECT is(pg_temp.tier('tier1000'), 33, 'a new one at once');
SELECT throws_ok('INSERT INTO admission.concurrency_tier VALUES (-1, 3)', '23514', NULL, 'no negative amount');
SELECT throws_ok('INSERT INTO admission.concurrency_tier VALUES (7, -3)', '23514', NULL, 'no negative concurrency');
DELETE FROM admission.concurrency_tier;
SELECT is(pg_temp.tier('tier1000'), 0, 'no tier at all: nothing runs');

SELECT is_empty('SELECT * FROM admission.verify()', 'verify() finds nothing');
SELECT * FROM finish();
ROLLBACK;
