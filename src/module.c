/*
 * module.c
 *	  Module magic and settings.
 */
#include "admission.h"

#include "utils/guc.h"

#include "clock.h"
#include "store.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

void
_PG_init(void)
{
	DefineCustomStringVariable("admission.test_clock",
							   "Freezes the clock of admission at a timestamp, for tests.",
							   "A timestamptz as text; empty reads the real clock.",
							   &clock_test_setting, "", PGC_SUSET, 0,
							   clock_check_setting, clock_assign_setting, NULL);
	MarkGUCPrefixReserved("admission");
	store_init();
}
