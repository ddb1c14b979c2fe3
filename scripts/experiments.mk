# Measurements with a table of their own: what a yield costs without any
# instrument, and the two experiments of the PBG report. docs/experiments.md shows
# what they print.
# In:  SCHEDLAB given (lab.mk); POLICIES (features.mk); target/toolchain.mk
#      ARCH FEATURES, where they were given, maybe lists with commas; cost runs on
#      all architectures otherwise, the experiments on x86_64
#      SCALE SMP TIMING TIMEOUT COST_OUT PHASES for cost; TIMEOUT for the experiments
# Out: cost                   target/cost/*.txt (result lines), table.md; COST_OUT
#                             (CSV)
#      experiment-cost        target/experiments/cost/: tables and figures
#      experiment-turnaround  target/experiments/turnaround/: the same

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

COST_OUT ?= target/cost/cost.csv
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

# Not in the recipe: a line of one that names the make program is run even by a
# dry run.
COST = SCALE='$(SCALE)' SMP='$(SMP)' TIMING='$(TIMING)' TIMEOUT='$(TIMEOUT)' MAKE='$(MAKE)' \
    COST_OUT='$(COST_OUT)' PHASES='$(PHASES)' scripts/cost.sh '$(if $(call given,ARCH,.),$(ARCH),$(ARCHES))' '$(or $(FEATURES),$(POLICIES))'

ifneq ($(filter cost experiment-cost experiment-turnaround,$(MAKECMDGOALS)),)
  include target/toolchain.mk
endif

.PHONY: cost experiment-cost experiment-turnaround

cost:
	$(Q)$(COST)

experiment-cost: export SCHED_YIELDS := $(REPORT_YIELDS)
experiment-cost:
	$(Q)$(call experiment,yield,target/lab-yields$(REPORT_YIELDS),cost)

experiment-turnaround:
	$(Q)$(call experiment,realtime,target/lab,turnaround)
