-- One line of progress; the variable seconds comes from demo/run.
SELECT format('%3s s: accepted %s, queued %s, processing %s (%s in doubt), completed %s, failed %s, canceled %s, expired %s; refusals %s',
              :'seconds', count(*), count(*) FILTER (WHERE state = 'queued'), count(*) FILTER (WHERE state = 'processing'),
              count(*) FILTER (WHERE state = 'processing' AND submission = 'unknown'), count(*) FILTER (WHERE state = 'completed'),
              count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'canceled'), count(*) FILTER (WHERE state = 'expired'),
              (SELECT count(*) FROM admission.rejection))
  FROM admission.job;
