# Costs, each with its own table: a yield without any instrument, coroutines beside threads,
# connections served by both, and each call of a scheduler on the host. docs/experiments.md shows
# the output, docs/cost-gate.md the gate.
# In:  A      one of cost, coop-cost, connections or host [default: cost]
#      ARCEOS cost: the line of ArceOS
#      LAB    options of schedlab's cost, coop-cost or connections
#      ARCH FEATURES, if given, as lists with commas; SMP SCALE TIMING TIMEOUT
#      MEM    connections: the memory that threads run out of [default: 48M]
#      SCHEDLAB given refuse cells HELPED (lab.mk); GUNGRAUN_RUNNER (FOUND) of host
# Out: COST_OF  the chosen one
#      cost     cost         target/cost/*.txt (result lines), table.md, cost.csv; or the verdict of
#                            the gate (LAB=--gate)
#               coop-cost    target/coop-cost.csv, and a table; fails if a limit is missed
#               connections  the guests' tables; coroutines beside threads;
#                            target/connections/<arch>-<policy>.log, and .sources, the image's
#                            sources; connections.csv
#               host         target/bench/callgrind: Callgrind's counts

ifneq ($(filter cost,$(MAKECMDGOALS)),)
  COST_OF := $(if $(call is-given,A),$(notdir $(A:%/=%)),cost)
  COST_ALL := cost coop-cost connections host
  ifneq ($(words $(filter $(COST_ALL),$(COST_OF))),1)
    $(error A=$(A): not of make cost; $(call meant,$(COST_OF),$(COST_ALL))allowed is one of: $(COST_ALL))
  endif
  # The gate has a scale and a clock of its own.
  COST_GATED := $(filter --gate --gate=%,$(LAB))
  COST_MAY_cost        := ARCH ARCEOS FEATURES $(if $(COST_GATED),TIMEOUT,SMP SCALE TIMING TIMEOUT) LAB
  COST_MAY_coop-cost   := ARCH FEATURES SMP SCALE TIMING TIMEOUT LAB
  COST_MAY_connections := ARCH FEATURES SMP SCALE TIMING MEM TIMEOUT LAB
  COST_MAY_host        := FEATURES
  COST_MAY := $(strip $(COST_MAY_$(COST_OF)))
  $(call refuse,cost,$(filter-out $(COST_MAY),$(NO_CELL) PROFILE_OUT ARCH SMP SCALE TIMING TIMEOUT LAB),A $(COST_MAY),$(ANYWHERE))
  # Without preemption PBG is the same scheduler.
  $(call cells,$(if $(filter host,$(COST_OF)),$(filter-out %_coop,$(POLICIES)),$(POLICIES)) $(if $(filter connections,$(COST_OF)),$(SHARING)))
endif

COST_CELLS = $(call given,ARCH,--arch) $(call given,FEATURES,--policy) $(call given,TIMEOUT,--timeout) \
    $(call given,SCALE,--scale) $(call given,SMP,--smp) $(call given,TIMING,--timing) $(LAB_LINE)

# Schedulers are called as in result lines: rr, stock-rr.
BENCH_NAMES = $(patsubst stock_%,stock-%,$(patsubst sched_%,%,$(subst $(comma), ,$(FEATURES))))
BENCH_ENV = RUSTC='$(HOST_RUSTC)' GUNGRAUN_RUNNER='$(GUNGRAUN_RUNNER)' \
    $(if $(call is-given,FEATURES),BENCH_SCHEDULERS='$(BENCH_NAMES)')

# 1,024 connections take a quarter of it with coroutines, and do not fit with threads.
CONN_MEM  = $(if $(call is-given,MEM),$(MEM),48M)
CONN_ARCHES   = $(subst $(comma), ,$(ARCH))
CONN_POLICIES = $(or $(POLICY),sched_fifo sched_coop)
CONN_SHARING  = $(filter $(SHARING),$(FEATURE_LIST))
CONN_LOGS = $(foreach a,$(CONN_ARCHES),$(CONN_POLICIES:%=target/connections/$(a)-%.log))
# Not spelt out in the recipe, or a dry run would not be dry.
CONN_MAKE = $(MAKE) --no-print-directory A=apps/coop/connections MEM=$(CONN_MEM) PROFILE_OUT= \
    TIMEOUT=$(if $(call is-given,TIMEOUT),$(TIMEOUT),1800)

.PHONY: cost

ifeq ($(COST_OF),host)
cost:
	$(Q)$(BENCH_ENV) $(HOST_CARGO) bench $(WHERE) --quiet --package sched-bench --features callgrind \
	    --bench callgrind -- --home='$(CURDIR)/target/bench/callgrind' --parallel=auto \
	    --callgrind-metrics=ir,d1mr,d1mw --nosummary
	$(Q)RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) run $(WHERE) --quiet --profile bench --package sched-bench --bin sched-memory
else ifeq ($(COST_OF)$(HELPED),connections)
# The lines are for programs. A list has the start time of its build: a later change may be in the
# image, or not.
cost:
	$(Q)mkdir -p target/connections
	$(Q)for arch in $(CONN_ARCHES); do for policy in $(CONN_POLICIES); do \
	    begin=$$(date +%s.%N); \
	    $(CONN_MAKE) lab-sources ARCH="$$arch" FEATURES="$$policy $(CONN_SHARING)" | \
	        sed -n 's/^source: //p' >"target/connections/$$arch-$$policy.sources"; \
	    touch -d "@$$begin" "target/connections/$$arch-$$policy.sources"; \
	    $(CONN_MAKE) run ARCH="$$arch" FEATURES="$$policy $(CONN_SHARING)" | \
	        tee "target/connections/$$arch-$$policy.log" | sed '/^SCHED-/d'; \
	done; done
	$(Q)$(SCHEDLAB) connections $(CONN_LOGS) --csv target/connections/connections.csv $(LAB)
else
cost:
	$(Q)$(SCHEDLAB) $(COST_OF) $(strip $(COST_CELLS)) $(LAB)
endif
