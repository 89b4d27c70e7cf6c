#ifndef STEP_H
#define STEP_H

#include "job.h"

/* one hand on a tenant's accepted jobs: lock D is held */
typedef struct Desk
{
	Store	   *s;
	int32		tenant_id;
	TimestampTz now;
	Dispatch	totals;			/* as they will be */
	Dispatch	written;		/* as the newest row says */
} Desk;

/* how a job ends */
typedef struct Ending
{
	const char *kind;			/* of the dispatch row */
	const char *state;
	const char *cause;
	int64		captured;		/* overage included */
	bool		unpriced;
	const char *settlement_key;
	const char *provider_job_id;
	Jsonb	   *result;
	const char *reason;
} Ending;

extern void desk_open(Desk *desk, Store *s, int32 tenant_id);
extern bool desk_try(Desk *desk, Store *s, int32 tenant_id);
extern void desk_note(Desk *desk, const char *reason);

extern void job_enqueue(Store *s, const JobState *state);
extern void job_start(Desk *desk, JobState *state, const char *worker, TimestampTz lease_expires_at, bool begin, int32 limit);
extern void job_return(Desk *desk, JobState *state, TimestampTz available_at, const char *kind, const char *reason);
extern void job_become_available(Desk *desk, JobState *state);
extern void job_replace(Store *s, JobState *state);
extern void job_mark(Desk *desk, JobState *state, const char *kind);
extern void job_end(Desk *desk, JobState *state, const Ending *ending);
extern void job_end_late(Desk *desk, JobState *state, int64 charged);

#endif
