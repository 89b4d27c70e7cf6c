#ifndef ARGS_H
#define ARGS_H

#include "decision.h"

/* the arguments of admit, checked in form */
typedef struct Request
{
	const char *tenant;			/* of the batch that an item belongs to */
	const char *operation_key;	/* NULL: preview without one */
	const char *model;
	Jsonb	   *request;
	Jsonb	   *context;
	int32		priority;
	int64		start_within;	/* NO_TIME: the policy's */
	int64		max_ahead;		/* -1: any */
	int64		max_cost;		/* NO_AMOUNT: any */
} Request;

/* reads a field of a jsonb item; what is expected of it if it is malformed, else NULL */
typedef const char *(*FieldReader) (const char *name, const JsonbValue *value, void *into);

extern const char *arg_text(FunctionCallInfo fcinfo, int n);
extern Jsonb *arg_jsonb(FunctionCallInfo fcinfo, int n);
extern bool arg_span(FunctionCallInfo fcinfo, int n, int64 *micros);
extern bool text_fits(const char *text, int most);
extern bool is_object(const Jsonb *json);
extern bool json_whole(const JsonbValue *value, int64 low, int64 high, int64 *number);
extern bool json_text(const JsonbValue *value, const char **text);
extern bool json_uuid(const JsonbValue *value, pg_uuid_t *uuid);

extern bool fields_from_json(Jsonb *item, FieldReader reader, void *into, Decision *d);
extern bool tenant_of_call(Store *s, const char *name, Tenant *tenant, Decision *d);
extern bool request_from_call(FunctionCallInfo fcinfo, Request *request, Decision *d);
extern bool request_from_json(Jsonb *item, const char *tenant, Request *request, Decision *d);
extern bool request_key_fits(const Request *request, const Policy *policy, bool key_needed, Decision *d);

#endif
