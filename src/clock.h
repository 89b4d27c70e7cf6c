#ifndef CLOCK_H
#define CLOCK_H

#include "utils/guc.h"

extern char *clock_test_setting;
extern bool clock_check_setting(char **newval, void **extra, GucSource source);
extern void clock_assign_setting(const char *newval, void *extra);

extern TimestampTz clock_now(void);
extern TimestampTz clock_add(TimestampTz at, int64 micros);
extern int64 clock_span_micros(const Interval *span, bool *valid);
extern Interval *clock_interval(int64 micros);

#endif
