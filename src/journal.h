#ifndef JOURNAL_H
#define JOURNAL_H

#include "store.h"

/* the totals after a row of each journal; no = 0: the tenant has none yet */
typedef struct Intake
{
	int64		no;
	int64		admitted;
	int64		reserved;
	TimestampTz rate_clock;		/* when the submit rate's bucket is empty again */
} Intake;

typedef struct Dispatch
{
	int64		no;
	TimestampTz at;
	int64		departed;		/* left the queue, less those given back */
	int64		concluded;
	int64		active;
	int64		unreserved;
	int64		captured;
	bool		saturated;		/* off the ring for want of room */
	int32		served;			/* jobs started in this turn of the ring */
	TimestampTz due_at;			/* the earliest due entry written */
} Dispatch;

typedef struct Billing
{
	int64		no;
	int64		credited;
} Billing;

/* what an intake row says besides its totals */
typedef struct IntakeEntry
{
	TimestampTz at;
	int32		jobs;
	int64		amount;
	int64		dispatch_no;
	int64		billing_no;
	int32		concurrency_limit;
	int32		accepted_limit;
	int64		overdraft;
	bool		observed;
} IntakeEntry;

/* what a dispatch row says besides its totals; job_no 0: it concerns no job */
typedef struct DispatchEntry
{
	const char *kind;
	int64		job_no;
	pg_uuid_t	job_id;
	int32		attempt;
	int64		previous_no;
	int32		concurrency_limit;	/* -1: none was asked */
	const char *worker;
	const char *reason;
} DispatchEntry;

extern void intake_newest(Store *s, int32 tenant_id, Intake *totals);
extern void dispatch_newest(Store *s, int32 tenant_id, Dispatch *totals);
extern bool dispatch_numbered(Store *s, int32 tenant_id, int64 no, Dispatch *totals);
extern void billing_newest(Store *s, int32 tenant_id, Billing *totals);
extern void intake_append(Store *s, int32 tenant_id, Intake *totals, const IntakeEntry *entry);
extern void dispatch_append(Store *s, int32 tenant_id, Dispatch *totals, TimestampTz at, const DispatchEntry *entry);

#endif
