#ifndef DECISION_H
#define DECISION_H

#include "utils/jsonb.h"

#include "codes.h"
#include "standing.h"

typedef enum Code
{
#define AS_CODE(id, ...) CODE_##id,
	DECISION_CODES(AS_CODE)
#undef AS_CODE
	CODE_COUNT
} Code;

/* a jsonb object under construction */
typedef struct Details
{
	JsonbParseState *state;
	Jsonb	   *done;
} Details;

typedef struct Decision
{
	Code		code;
	int64		retry_after;	/* microseconds; 0: none */
	bool		has_job;
	pg_uuid_t	job_id;
	int64		reserved;		/* NO_AMOUNT: none */
	Details		details;
	bool		has_limits;
	Standing	standing;		/* what limits shows, if has_limits */
} Decision;

#define NO_AMOUNT PG_INT64_MIN

extern void decide(Decision *d, Code code);
extern void decide_invalid(Decision *d, const char *field, const char *expected);
extern void decision_keep(Decision *d);
extern bool code_ok(Code code);
extern const char *code_name(Code code);
extern Datum decision_datum(FunctionCallInfo fcinfo, Decision *d);
extern void decision_put(FunctionCallInfo fcinfo, Decision *d);
extern Datum limits_datum(Oid type, const Standing *standing);

extern void details_int(Details *details, const char *key, int64 value);
extern void details_text(Details *details, const char *key, const char *value);
extern void details_bool(Details *details, const char *key, bool value);
extern void details_time(Details *details, const char *key, TimestampTz value);
extern void details_money(Details *details, const char *key, int64 micro, int64 credit_micro);
extern void details_open(Details *details, const char *key, JsonbIteratorToken what);
extern Jsonb *details_jsonb(Details *details);
extern void details_close(Details *details, JsonbIteratorToken what);

#endif
