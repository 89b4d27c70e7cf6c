#ifndef CONFIG_H
#define CONFIG_H

#include "store.h"

typedef struct Policy
{
	int32		key_max_length;
	int64		top_up_window;
	int32		queue_factor;
	int32		queue_minimum;
	double		wave_fraction;
	int64		default_lease;
	int64		default_start_within;	/* NO_TIME: none */
	int32		max_attempts;
	int64		credit_micro;
	bool		log_rejections;
	bool		charge_late;
	bool		draining;
} Policy;

typedef struct Tenant
{
	int32		id;
	const char *name;
	const char *plan_id;		/* NULL: none */
	bool		observe;
	bool		suspended;
	int32		concurrency_override;	/* -1: none */
	int32		queued_override;	/* -1: none */
	TimestampTz override_expires_at;
	double		submit_rate;	/* 0: unlimited */
	int32		submit_burst;
	int32		weight;
	int64		overdraft;
	int64		at_risk;		/* -1: none */
} Tenant;

typedef struct Model
{
	int32		id;
	const char *name;
	const char *provider;
	bool		enabled;
	bool		open_to_all;
	TimestampTz paused_until;
	bool		queue_while_paused;
	int32		max_attempts;	/* 0: the policy's */
} Model;

extern void policy_read(Store *s, Policy *policy);
extern bool tenant_find(Store *s, const char *name, Tenant *tenant);
extern bool tenant_read(Store *s, int32 tenant_id, Tenant *tenant);
extern bool model_find(Store *s, const char *name, Model *model);
extern bool model_read(Store *s, int32 model_id, Model *model);
extern bool model_open_to(Store *s, const Model *model, const Tenant *tenant);
extern bool model_may_start(const Model *model, TimestampTz now);
extern bool model_paused(const Model *model, TimestampTz now);

#endif
