#ifndef JOB_H
#define JOB_H

#include "utils/jsonb.h"

#include "journal.h"

/* the wide record, never updated: what the other calls need of it */
typedef struct Job
{
	pg_uuid_t	id;
	int32		tenant_id;
	int64		no;
	int32		lane_no;
	int32		model_id;
	bytea	   *fingerprint;
	const char *unit;
	int64		quantity;
	int64		quote;
	int64		held;
	Jsonb	   *request;
	Jsonb	   *context;
} Job;

typedef enum Place
{
	PLACE_NONE,
	PLACE_QUEUED,
	PLACE_DELAYED,
	PLACE_PROCESSING,
	PLACE_ENDED
} Place;

typedef enum Submission
{
	SUBMISSION_NONE,
	SUBMISSION_STARTED,
	SUBMISSION_ACKNOWLEDGED,
	SUBMISSION_UNKNOWN
} Submission;

/* where a job is: its narrow row, whichever table it stands in */
typedef struct JobState
{
	Place		place;
	ItemPointerData tid;
	int32		tenant_id;
	int64		job_no;
	pg_uuid_t	job_id;
	int32		lane_no;		/* as in the row: negative where it was given back */
	int32		attempt;
	int32		lost;			/* leases that ran out before a submission */
	int64		previous_no;	/* the job's newest dispatch row */
	TimestampTz start_by;
	int64		held;

	/* queued, delayed */
	bool		submitted;		/* an earlier attempt had been submitted */
	TimestampTz available_at;

	/* processing */
	int32		model_id;
	Submission	submission;
	const char *worker;
	TimestampTz claimed_at;
	TimestampTz lease_expires_at;
	TimestampTz begun_at;
	TimestampTz submitted_at;
	TimestampTz unknown_since;
	const char *unknown_reason;
	const char *provider_job_id;

	/* ended */
	const char *state;
	const char *cause;
	TimestampTz finished_at;
	int64		captured;
	int64		released;
	int64		overage;
	bool		unpriced;
	bool		late;
	int64		late_micro;
	const char *settlement_key;
	Jsonb	   *result;
} JobState;

extern bool job_read(Store *s, const pg_uuid_t *job_id, Job *job);
extern bool job_of_key(Store *s, int32 tenant_id, const char *operation_key, Job *job);
extern void job_find(Store *s, const Job *job, JobState *state);
extern bool job_lock(Store *s, JobState *state, bool wait);
extern void job_read_queued(TupleTableSlot *row, JobState *state);
extern void job_read_delayed(TupleTableSlot *row, JobState *state);
extern void job_read_processing(TupleTableSlot *row, JobState *state);
extern const char *place_name(const JobState *state);
extern const char *submission_name(Submission submission);

#endif
