#ifndef TIER_H
#define TIER_H

#include "config.h"

typedef struct Limits
{
	int32		purchased;
	int32		concurrency;
	int32		queued;
	int32		accepted;
	bool		overridden;
} Limits;

extern void limits_read(Store *s, const Policy *policy, const Tenant *tenant, TimestampTz now, Limits *limits);

#endif
