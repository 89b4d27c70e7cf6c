#ifndef LEASE_H
#define LEASE_H

#include "config.h"
#include "ring.h"
#include "step.h"

/* what time ended */
typedef struct Lapsed
{
	int32		expired;
	int32		requeued;
	int32		failed;
	int32		unknown;
	int32		skipped;
} Lapsed;

extern bool lease_visit(Store *s, const Policy *policy, DueTenant *due, Lapsed *lapsed);
extern void expire_unstarted(Desk *desk, JobState *state);

#endif
