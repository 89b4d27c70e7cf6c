#ifndef STANDING_H
#define STANDING_H

#include "config.h"
#include "journal.h"
#include "tier.h"

/* all that a decision about one tenant is made from, read in one look */
typedef struct Standing
{
	TimestampTz now;
	Policy		policy;
	Tenant		tenant;
	Limits		limits;
	Intake		intake;
	Dispatch	dispatch;
	Billing		billing;
} Standing;

/* what the standing comes to */
typedef struct Capacity
{
	int32		active;
	int32		queued;
	int64		outstanding;
	int32		remaining;		/* acceptances to the accepted limit, never below zero */
	int32		wave;
	int32		budget;
	int64		held;
	int64		balance;
	int64		available;
} Capacity;

extern bool standing_of_name(Store *s, const char *name, Standing *standing);
extern bool standing_of_id(Store *s, int32 tenant_id, Standing *standing);
extern void standing_refresh(Store *s, Standing *standing);
extern Capacity standing_capacity(const Standing *standing);
extern int64 standing_turnover(Store *s, const Standing *standing);

#endif
