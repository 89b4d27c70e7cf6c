#ifndef GATES_H
#define GATES_H

#include "decision.h"

/* what the gates decide on, each number read under the lock of the decision */
typedef struct GateInput
{
	bool		observe;
	int64		turnover;		/* usual time between two conclusions */

	TimestampTz now;
	bool		rate_refused;	/* and waived: in enforce mode nothing gets here */

	/* money asked */
	int64		quote;
	int64		hold;
	int64		max_cost;		/* NO_AMOUNT: none */
	TimestampTz paused_until;	/* NO_TIME: the model admits */

	/* counts */
	bool		pool_full;
	int64		pool_capacity;
	int64		pool_used;
	int64		pool_in_doubt;
	int64		outstanding;
	int64		accepted_limit;
	int64		ahead;
	int64		max_ahead;		/* -1: none */

	/* money there is */
	int64		held;
	int64		at_risk;		/* -1: none */
	int64		available;
	int64		overdraft;
} GateInput;

typedef struct GateFailure
{
	Code		gate;
	int64		limit;
	int64		used;
	int64		needed;
	int64		changes_in;		/* microseconds until it can change at the earliest; 0: unknown */
} GateFailure;

typedef struct GateResult
{
	Code		code;			/* CODE_ACCEPTED, or the first gate that refuses */
	Code		would_be;		/* the first that observe mode waived, or CODE_ACCEPTED */
	int64		retry_after;	/* of code, without jitter */
	int			failures;
	GateFailure failed[5];
} GateResult;

extern bool gates_rate(TimestampTz now, double rate, int32 burst, TimestampTz rate_clock, TimestampTz *after, int64 *retry_after);
extern void gates_decide(const GateInput *in, GateResult *out);

#endif
