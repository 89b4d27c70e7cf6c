#ifndef EVIDENCE_H
#define EVIDENCE_H

#include "decision.h"
#include "job.h"

#define NO_ATTEMPT	(-1)

/* what a worker or a provider reported of a job */
typedef struct Report
{
	const char *outcome;		/* NULL: none */
	int64		actual;			/* NO_AMOUNT: none stated */
	const char *settlement_key;
	int32		attempt;		/* NO_ATTEMPT: none stated */
	Jsonb	   *result;
	const char *provider_job_id;
} Report;

extern void evidence_keep(Store *s, const Job *job, TimestampTz at, Code code, const Report *report);

#endif
