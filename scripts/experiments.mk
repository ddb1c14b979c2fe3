# Measurements with a table of their own: what a yield costs without any instrument, what
# coroutines cost beside threads, and what each call of a scheduler costs on the host.
# docs/experiments.md shows what they print, docs/cost-gate.md the gate.
# In:  SCHEDLAB given (lab.mk); FOUND
#      ARCH FEATURES, where they were given, maybe lists with commas; all otherwise
#      SCALE SMP TIMING TIMEOUT COST_OUT PHASES for cost
#      SCALE SMP TIMING TIMEOUT COOP_OUT for coop-cost
#      TIMEOUT GATE UPDATE for cost-gate
#      FEATURES for bench, which boots nothing; GUNGRAUN_RUNNER (FOUND)
# Out: cost       target/cost/*.txt (result lines), table.md; COST_OUT (CSV)
#      coop-cost  COOP_OUT (CSV), and a table; fails if a limit is missed
#      cost-gate  nothing, or the measured lines in GATE; fails if a yield costs more than is
#                 written there
#      bench      target/bench/callgrind: what Callgrind counted

COST_OUT ?= target/cost/cost.csv
COOP_OUT ?= target/coop-cost.csv
# At so many phases of the timer tick; in real time there is one.
PHASES   ?= 1
ifneq ($(filter cost,$(MAKECMDGOALS)),)
  ifneq ($(filter-out 1 2 4 8 16,$(PHASES))$(filter-out 1,$(words $(PHASES))),)
    $(error PHASES=$(PHASES): allowed is one of: 1 2 4 8 16)
  endif
  ifneq ($(filter-out 1,$(PHASES))-$(TIMING),-$(TIMING))
    ifneq ($(TIMING),icount)
      $(error PHASES=$(PHASES) TIMING=$(TIMING): only counted time starts at a phase of the tick; allowed are PHASES=1 or TIMING=icount)
    endif
  endif
endif

# The figures that the gate holds against what it measures: of so many yields less than make
# cost does, which is precise enough (docs/cost-gate.md).
GATE      ?= docs/results/cost-gate.csv
UPDATE    ?= n
GATE_SCALE = 8
ifneq ($(filter cost-gate,$(MAKECMDGOALS)),)
  $(call one-of,UPDATE,n y)
  ifneq ($(words $(GATE)),1)
    $(error GATE=$(GATE): allowed is one file)
  endif
  ifeq ($(UPDATE)$(wildcard $(GATE)),n)
    $(error GATE=$(GATE): no such file; allowed is one that make cost-gate UPDATE=y has written)
  endif
endif

# Without preemption PBG is the same scheduler.
BENCH_POLICIES = $(filter-out %_coop,$(POLICIES))
# Schedulers are called as in result lines: rr, stock-rr.
BENCH_NAMES = $(patsubst stock_%,stock-%,$(patsubst sched_%,%,$(subst $(comma), ,$(FEATURES))))
BENCH_ENV = RUSTC='$(HOST_RUSTC)' GUNGRAUN_RUNNER='$(GUNGRAUN_RUNNER)' \
    $(if $(call is-given,FEATURES),BENCH_SCHEDULERS='$(BENCH_NAMES)')
ifneq ($(filter bench,$(MAKECMDGOALS)),)
  $(call list-of,FEATURES,$(BENCH_POLICIES))
endif

COST_CELLS = $(call given,ARCH,--arch) $(call given,FEATURES,--policy) $(call given,TIMEOUT,--timeout)

ifneq ($(filter bench cost coop-cost cost-gate,$(MAKECMDGOALS)),)
  include $(FOUND)
endif

.PHONY: bench cost coop-cost cost-gate

bench:
	$(Q)$(BENCH_ENV) $(HOST_CARGO) bench $(WHERE) --quiet --package sched-bench --features callgrind \
	    --bench callgrind -- --home='$(CURDIR)/target/bench/callgrind' --parallel=auto \
	    --callgrind-metrics=ir,d1mr,d1mw --nosummary
	$(Q)RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) run $(WHERE) --quiet --profile bench --package sched-bench --bin sched-memory

cost:
	$(Q)$(SCHEDLAB) cost $(strip $(COST_CELLS) $(call given,SCALE,--scale) $(call given,SMP,--smp) \
	    $(call given,TIMING,--timing)) --phases $(PHASES) --csv '$(COST_OUT)' $(call kept,$(COST_OUT))

coop-cost:
	$(Q)$(SCHEDLAB) coop-cost $(strip $(COST_CELLS) $(call given,SCALE,--scale) $(call given,SMP,--smp) \
	    $(call given,TIMING,--timing)) --csv '$(COOP_OUT)' $(call kept,$(COOP_OUT))

cost-gate:
	$(Q)$(SCHEDLAB) cost $(strip $(COST_CELLS)) --scale $(GATE_SCALE) --gate '$(GATE)' $(if $(filter y,$(UPDATE)),--update)
