# Measurements with a table of their own: what a yield costs without any
# instrument, what each call of a scheduler costs on the host, the two experiments of the PBG
# report, a program that waits ever more often, and what the order of a ready queue is worth.
# docs/experiments.md shows what they print, docs/cost-gate.md the gate, docs/bench.md the calls.
# In:  SCHEDLAB given (lab.mk); FOUND
#      ARCH FEATURES, where they were given, maybe lists with commas; cost runs on
#      all architectures otherwise, the experiments on x86_64
#      SCALE SMP TIMING TIMEOUT COST_OUT PHASES for cost; TIMEOUT for the experiments
#      SCALE SMP TIMING TIMEOUT COOP_OUT for coop-cost
#      TIMEOUT GATE UPDATE for cost-gate
#      FEATURES TASKS BENCH_OUT for bench, which boots nothing; GUNGRAUN_RUNNER (FOUND)
#      ARCH (one) SCALE TIMEOUT WAITS WAITS_OUT LAB for experiment-waits
#      ARCH (one) SCALE TIMEOUT ORDER_OUT for experiment-order
# Out: cost                   target/cost/*.txt (result lines), table.md; COST_OUT
#                             (CSV)
#      coop-cost              COOP_OUT (CSV), and a table; fails if a limit is missed
#      cost-gate              nothing, or the measured lines in GATE; fails if a
#                             yield costs more than is written there
#      bench                  BENCH_OUT: bench.csv, and a chart; target/bench: what Callgrind
#                             counted, and the tables as Markdown
#      experiment-cost        target/experiments/cost/: tables and figures
#      experiment-turnaround  target/experiments/turnaround/: the same
#      experiment-waits       WAITS_OUT: waits.csv, and a chart; a folder of results
#                             for each number of waits: target/lab-waits1 ...
#      experiment-order       ORDER_OUT: order.csv; two folders of results:
#                             target/lab-order-buckets, target/lab-order-exact

# Groups of work of each task in the report's experiment on scheduling cost; its
# yield test, and our app by itself, has a quarter of that.
REPORT_YIELDS := 400000

EXPERIMENT_CELLS = $(if $(call given,ARCH,),,--arch x86_64) \
    $(call given,ARCH,--arch) $(call given,FEATURES,--policy)
# $(call experiment,APP,RESULTS,NAME): run what has to be run, then show it.
define experiment
$(SCHEDLAB) matrix --app $(1) $(strip $(EXPERIMENT_CELLS) $(call given,TIMEOUT,--timeout)) --results $(2)
$(SCHEDLAB) compare --app $(1) $(strip $(EXPERIMENT_CELLS)) --long --out target/experiments/$(3) $(2)
endef

# How often a job of batch waits: the numbers of the sweep, as a list with commas.
ALL_WAITS  = $(shell seq 64)
WAITS     ?= $(ALL_WAITS)
WAITS_OUT ?= target/experiments/waits$(SCALED)
WAITS_LIST = $(filter $(subst $(comma), ,$(WAITS)),$(ALL_WAITS))
WAITS_LAB  = target/lab$(SCALED)-waits
WAITS_CELLS = --app batch --arch $(ARCH) --policy sched_sjf,sched_pbg \
    $(call given,SCALE,--scale) $(call given,TIMEOUT,--timeout)
ifneq ($(filter experiment-waits,$(MAKECMDGOALS)),)
  ifneq ($(filter-out $(ALL_WAITS),$(subst $(comma), ,$(WAITS)))$(if $(word 2,$(WAITS_LIST)),,few),)
    $(error WAITS=$(WAITS): allowed are two numbers or more from 1 to 64, as a list with commas)
  endif
  ifneq ($(filter-out $(ARCHES),$(ARCH))$(word 2,$(ARCH)),)
    $(error ARCH=$(ARCH): not of make experiment-waits; allowed is one of $(ARCHES))
  endif
endif

# CFS and EEVDF with the ready queue that they have, exact to one bucket, and with the tree.
ORDER_OUT ?= target/experiments/order$(SCALED)
ORDER_LAB  = target/lab$(SCALED)-order-
ORDER_CELLS = --arch $(ARCH) --policy sched_cfs,sched_eevdf $(call given,SCALE,--scale) $(call given,TIMEOUT,--timeout)
ifneq ($(filter experiment-order,$(MAKECMDGOALS)),)
  ifneq ($(filter-out $(ARCHES),$(ARCH))$(word 2,$(ARCH)),)
    $(error ARCH=$(ARCH): not of make experiment-order; allowed is one of $(ARCHES))
  endif
endif

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

# What Callgrind counts on the host: of all schedulers, with 1 to 10,000 tasks.
BENCH_OUT ?= target/bench
# Without preemption PBG is the same scheduler.
BENCH_POLICIES = $(filter-out %_coop,$(POLICIES))
# Schedulers are called as in result lines: rr, stock-rr.
BENCH_NAMES = $(patsubst stock_%,stock-%,$(patsubst sched_%,%,$(subst $(comma), ,$(FEATURES))))
BENCH_ENV = RUSTC='$(HOST_RUSTC)' GUNGRAUN_RUNNER='$(GUNGRAUN_RUNNER)' \
    $(if $(call is-given,FEATURES),BENCH_SCHEDULERS='$(BENCH_NAMES)') $(if $(call is-given,TASKS),BENCH_TASKS='$(TASKS)')
ifneq ($(filter bench,$(MAKECMDGOALS)),)
  $(call list-of,FEATURES,$(BENCH_POLICIES))
  ifneq ($(call is-given,TASKS),)
    # Only digits and commas are handed to the shell.
    TASKS_OK := $(if $(filter 1,$(words $(TASKS))$(subst $(comma),,$(call digits-left,$(TASKS)))),$(shell [[ '$(TASKS)' =~ ^[1-9][0-9]{0,4}(,[1-9][0-9]{0,4})*$$ ]] && echo y))
    ifneq ($(TASKS_OK),y)
      $(error TASKS=$(TASKS): allowed are whole numbers from 1 to 99999, as a list with commas)
    endif
  endif
endif

COST_CELLS = $(call given,ARCH,--arch) $(call given,FEATURES,--policy) $(call given,TIMEOUT,--timeout)

ifneq ($(filter bench cost coop-cost cost-gate experiment-cost experiment-turnaround experiment-waits experiment-order,$(MAKECMDGOALS)),)
  include $(FOUND)
endif

.PHONY: bench cost coop-cost cost-gate experiment-cost experiment-turnaround experiment-waits experiment-order

bench:
	$(Q)mkdir -p target/bench
	$(Q)echo 'make: Callgrind runs each call of each scheduler: all of them in a minute or two' >&2
	$(Q)$(BENCH_ENV) $(HOST_CARGO) bench $(WHERE) --quiet --package sched-bench --features callgrind \
	    --bench callgrind -- \
	    --home='$(CURDIR)/target/bench/callgrind' --parallel=auto --output-format=json >target/bench/counts.jsonl
	$(Q)RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) run $(WHERE) --quiet --profile bench --package sched-bench \
	    --bin sched-memory >target/bench/memory.csv
	$(Q){ echo program sched-bench; scripts/sources.sh target/release/sched-memory.d; \
	    echo tools/sched-bench/benches/callgrind.rs; } >target/bench/sources
	$(Q)$(SCHEDLAB) bench target/bench/counts.jsonl target/bench/memory.csv --out '$(BENCH_OUT)'

cost:
	$(Q)$(SCHEDLAB) cost $(strip $(COST_CELLS) $(call given,SCALE,--scale) $(call given,SMP,--smp) \
	    $(call given,TIMING,--timing)) --phases $(PHASES) --csv '$(COST_OUT)' $(call kept,$(COST_OUT))

coop-cost:
	$(Q)$(SCHEDLAB) coop-cost $(strip $(COST_CELLS) $(call given,SCALE,--scale) $(call given,SMP,--smp) \
	    $(call given,TIMING,--timing)) --csv '$(COOP_OUT)' $(call kept,$(COOP_OUT))

cost-gate:
	$(Q)$(SCHEDLAB) cost $(strip $(COST_CELLS)) --scale $(GATE_SCALE) --gate '$(GATE)' $(if $(filter y,$(UPDATE)),--update)

experiment-cost: export SCHED_YIELDS := $(REPORT_YIELDS)
experiment-cost:
	$(Q)$(call experiment,yield,target/lab-yields$(REPORT_YIELDS),cost)

experiment-turnaround:
	$(Q)$(call experiment,realtime,target/lab,turnaround)

# As many images as there are numbers of waits, each for itself and its results in a
# folder of its own: what was not finished goes on where it was.
experiment-waits:
	$(Q)for n in $(WAITS_LIST); do \
	    export SCHED_WAITS=$$n; $(SCHEDLAB) matrix $(strip $(WAITS_CELLS)) --results $(WAITS_LAB)$$n $(LAB); \
	done
	$(Q)$(SCHEDLAB) waits --arch $(ARCH) --out '$(WAITS_OUT)' $(WAITS_LIST:%=$(WAITS_LAB)%)

# Averages depend on the phase of the tick, and what the two orders differ by must be held
# against that.
experiment-order: ORDER_PHASES = 8
experiment-order:
	$(Q)for order in buckets exact; do \
	    export SCHED_ORDER=$${order#buckets}; \
	    $(SCHEDLAB) matrix --app realtime,unequal,occupy,batch $(strip $(ORDER_CELLS)) \
	        --phases $(ORDER_PHASES) --results $(ORDER_LAB)$$order; \
	    $(SCHEDLAB) cost $(strip $(ORDER_CELLS)) --csv $(ORDER_LAB)$$order/cost.csv; \
	done
	$(Q)$(SCHEDLAB) order --arch $(ARCH) --out '$(ORDER_OUT)' $(ORDER_LAB)buckets $(ORDER_LAB)exact
