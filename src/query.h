#ifndef QUERY_H
#define QUERY_H

typedef enum QueryId
{
	QUERY_ADD_TENANT,
	QUERY_ADD_BILLING,
	QUERY_ADD_PROVIDER_JOB,
	QUERY_COUNT
} QueryId;

extern bool query_inserts(QueryId id, Datum *values, const bool *nulls);

#endif
