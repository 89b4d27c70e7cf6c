-- A backlog of :jobs queued jobs over the 1000 tenants, in the extension and in the plain tables. Expects request and context.

SELECT count(*) AS admitted
  FROM generate_series(1, 1000) t,
       admission.admit_many('rich-' || t, (
           SELECT jsonb_agg(jsonb_build_object('operation_key', 'job-' || i, 'model', 'clip', 'request', :'request'::jsonb, 'context', :'context'::jsonb))
             FROM generate_series(1, (:jobs + 999) / 1000) i)) d
 WHERE d.code = 'accepted' \g /dev/null

INSERT INTO floor.job_record
    SELECT floor.job_id(i), i % 1000 + 1, i, 1, 1, 1, 0, 'job-' || i, sha256(''), :'request', :'context', clock_timestamp(), NULL,
           'generation', 1, 100000, 100000, 100000, 100000, NULL
      FROM generate_series(1, :jobs) i;
INSERT INTO floor.queued SELECT i % 1000 + 1, 1, i, floor.job_id(i), 0, 0, 0, NULL, 100000, false FROM generate_series(1, :jobs) i;
