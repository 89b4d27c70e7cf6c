-- For answers that admit nothing: every rich tenant has one job, with the key again; 1000 tenants are full, 1000 have no money.

INSERT INTO admission.tenant (tenant, queued_jobs_override) SELECT 'full-' || i, 0 FROM generate_series(1, 1000) i;
INSERT INTO admission.tenant (tenant) SELECT 'poor-' || i FROM generate_series(1, 1000) i;
SELECT count(*) FROM generate_series(1, 1000) i, admission.grant_credit('full-' || i, 1000000000, 'grant', 'start full-' || i) d \g /dev/null
-- the lowest tier lets two jobs in
SELECT count(*) FROM generate_series(1, 1000) i, generate_series(1, 2) k,
       admission.admit('full-' || i, 'job-' || k, 'clip', :'request', :'context') d \g /dev/null
SELECT count(*) FROM generate_series(1, 1000) i,
       admission.admit('rich-' || i, 'again', 'clip', :'request', :'context') d \g /dev/null
