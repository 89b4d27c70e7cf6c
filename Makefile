# admission: PGXS build. The version's home is admission.control (META.json repeats it for PGXN).
EXTENSION    = admission
EXTVERSION   = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" admission.control)
MODULE_big   = admission

OBJS = $(addprefix src/, \
	module.o clock.o amount.o locks.o store.o query.o args.o decision.o \
	journal.o config.o price.o tier.o gates.o fingerprint.o \
	ring.o lane.o pool.o standing.o job.o step.o consider.o admit.o lookout.o claim.o lease.o submission.o settle.o cancel.o \
	evidence.o provider.o billing.o)

# the install script, in the order in which it runs
SQL_PARTS = $(addprefix src/sql/, \
	types.sql configuration.sql states.sql journals.sql dispatching.sql triggers.sql \
	application.sql workers.sql operators.sql views.sql reading.sql verify.sql \
	dump.sql privileges.sql)

INSTALL_SQL  = sql/admission--$(EXTVERSION).sql
DATA_built   = $(INSTALL_SQL)
EXTRA_CLEAN  = $(INSTALL_SQL)

REGRESS      = configuration admission money lifecycle badinput
REGRESS_OPTS = --inputdir=. --outputdir=. --load-extension=admission
ISOLATION    = admit_blocks_nothing dispatch_blocks_nothing wakeup same_key capacity claims settlement isolation_levels caller_order raise_limit deleted_rows
ISOLATION_OPTS = --inputdir=test --outputdir=output_iso --load-extension=admission

PG_CPPFLAGS  = -Isrc
PG_CFLAGS    = -Wall -Wextra -Werror=implicit-function-declaration -Wno-unused-parameter -Wno-sign-compare -Wno-missing-field-initializers -Wno-cast-function-type

PG_CONFIG   ?= pg_config
PGXS        := $(shell $(PG_CONFIG) --pgxs)
include $(PGXS)

all: $(INSTALL_SQL)

$(INSTALL_SQL): $(SQL_PARTS) admission.control
	@mkdir -p sql
	cat $(SQL_PARTS) > $@

$(OBJS): $(wildcard src/*.h)
