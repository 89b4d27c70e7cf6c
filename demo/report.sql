-- What came of the day.

\pset footer off

\echo
\echo 'Jobs'
SELECT t.tenant AS shop, count(j.job_id) AS accepted,
       count(*) FILTER (WHERE j.state = 'completed') AS completed, count(*) FILTER (WHERE j.state = 'failed') AS failed,
       count(*) FILTER (WHERE j.state = 'canceled') AS canceled, count(*) FILTER (WHERE j.state = 'expired') AS expired,
       coalesce((SELECT string_agg(r.code || ' ' || r.n, ', ' ORDER BY r.n DESC, r.code)
                   FROM (SELECT code, count(*) AS n FROM admission.rejection WHERE tenant_id = t.tenant_id GROUP BY code) AS r), '-') AS rejected
  FROM admission.tenant t LEFT JOIN admission.job j ON j.tenant = t.tenant
 GROUP BY t.tenant_id, t.tenant ORDER BY t.tenant_id;

\echo 'Money, in USD'
SELECT t.tenant AS shop, round((b.balance_micro + r.captured) / 1e6, 4) AS paid_in, round(r.captured / 1e6, 4) AS captured,
       round(b.held_usd, 4) AS held, round(b.available_usd, 4) AS available
  FROM admission.tenant t
 CROSS JOIN LATERAL admission.balance(t.tenant) AS b
 CROSS JOIN LATERAL (SELECT coalesce(sum(captured_micro), 0) AS captured FROM admission.reservation WHERE tenant = t.tenant) AS r
 ORDER BY t.tenant_id;

\echo 'On the way'
SELECT what, jobs FROM (VALUES
    (1, 'given back because the provider was busy', (SELECT count(*) FROM admission.dispatch WHERE kind = 'requeue')),
    (2, 'taken back from the killed worker when its lease ran out', (SELECT count(*) FROM admission.dispatch WHERE kind = 'lost')),
    (3, 'of those, claimed by another worker', (SELECT count(DISTINCT l.job_id) FROM admission.dispatch l JOIN admission.dispatch c
        ON c.job_id = l.job_id AND c.kind = 'claim' AND c.attempt > l.attempt AND c.worker <> 'worker-5' WHERE l.kind = 'lost')),
    (4, 'in doubt for a while, then ended by a webhook', (SELECT count(*) FROM admission.ended WHERE unknown_since IS NOT NULL)),
    (5, 'reported in contradicting ways', (SELECT count(DISTINCT job_id) FROM admission.evidence WHERE code = 'settlement_conflict')),
    (6, 'on which admission and the shops'' own tables disagree', (SELECT count(*) FROM admission.job j FULL JOIN (SELECT * FROM studio.film WHERE job_id IS NOT NULL) f USING (job_id)
        WHERE j.operation_key IS DISTINCT FROM f.operation_key))
 ) AS facts (n, what, jobs) ORDER BY n;
