/*
 * admission.h
 *	  What every file of the extension includes.
 */
#ifndef ADMISSION_H
#define ADMISSION_H

#include "postgres.h"
#include "fmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#define ADMISSION_SCHEMA "admission"

/* one microsecond-based arithmetic for durations */
#define MICROS_PER_SECOND	INT64CONST(1000000)
#define MICROS_PER_HOUR		(INT64CONST(3600) * MICROS_PER_SECOND)

/* a timestamp or duration that may be absent */
#define NO_TIME				PG_INT64_MIN
#define HAS_TIME(t)			((t) != NO_TIME)

#endif
