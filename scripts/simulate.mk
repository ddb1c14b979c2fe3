# Simulates a recording under every policy, on any number of CPUs, in virtual time.
# In:  A ARCH SCALE TIMEOUT
#      FEATURES policies; for simulate and trace also whether several CPUs share the work (SHARING)
#      CPUS     numbers of CPUs, with commas
#      MODELLED trace, if CPUS= was given for it (Makefile); it uses TICK_PHASE
#      PROFILE  a recording of A [default: made by two boots if missing]
#      LAB      more options, such as --phases 64; `make simulate LAB=--help` lists them;
#               --check  also run the same cells on QEMU, and print both
#      SCHEDLAB given refuse with-rows APPS ARCHES HELPED OUT (lab.mk, Makefile)
# Out: simulate  tables; the recordings are in target/recordings, and made again when the app or
#                the library has changed
#      trace     for each policy and number of CPUs a file for Perfetto in target/trace, of the run
#                that starts at TICK_PHASE, and a table
#      advise    one screen: which policy, and why
#      plan      a table of orders; a profile with the best in target/plans

CPUS    ?= 1

# --check alone makes make run the cells first; --check=DIR uses existing results,
# and --check=FILE.csv a published table.
SIM_CHECK := $(if $(filter simulate,$(MAKECMDGOALS)),$(filter --check,$(LAB)))
# Guests have SMP CPUs.
SIM_OTHERS := $(filter-out simulate advise plan $(MODELLED) help target/%,$(MAKECMDGOALS))
# These take one number of CPUs, and play all policies.
SIM_ONE := $(filter advise plan,$(MAKECMDGOALS))
SIM_GOALS := $(filter simulate advise plan,$(MAKECMDGOALS)) $(MODELLED)
ifneq ($(SIM_OTHERS),)
  ifeq ($(origin CPUS),command line)
    $(error CPUS=$(CPUS): not of make $(firstword $(SIM_OTHERS)), but of make simulate; allowed is SMP=n)
  endif
endif

ifneq ($(strip $(SIM_GOALS)),)
  SIM_NO := $(filter-out PROFILE,$(NO_CELL)) SMP TIMING
  SIM_MAY_simulate := A ARCH SCALE FEATURES CPUS PROFILE TIMEOUT LAB
  SIM_MAY_advise   := $(filter-out FEATURES,$(SIM_MAY_simulate))
  SIM_MAY_plan     := $(SIM_MAY_advise)
  $(foreach g,simulate advise plan,$(call refuse,$(g),$(SIM_NO) PROFILE_OUT $(if $(filter advise plan,$(g)),FEATURES),$(SIM_MAY_$(g)),$(ANYWHERE))$(call refuse,$(g),T,$(SIM_MAY_$(g)),command))
  ifneq ($(MODELLED),)
    SIM_NOT := $(call set-of,$(filter-out TICK_PHASE,$(SIM_NO)),$(ANYWHERE))$(call set-of,PROFILE_OUT T,command)
    ifneq ($(SIM_NOT),)
      $(error $(SIM_NOT): not of make $(firstword $(MODELLED)) CPUS=$(CPUS), which boots nothing; allowed are TICK_PHASE $(SIM_MAY_simulate))
    endif
    $(tick-phase)
    ifneq ($(and $(filter %.perfetto-trace,$(OUT)),$(findstring $(comma),$(CPUS))),)
      $(error LAB=$(LAB) CPUS=$(CPUS): one file for several numbers of CPUs; allowed is one)
    endif
  endif
  # These tasks run until they are stopped: a recording only says when that was once.
  SIM_ENDLESS := $(filter %/unequal %/occupy,$(APPS))
  # Advice then concerns the shares of the CPU.
  SIM_REFUSED := $(if $(filter advise,$(MAKECMDGOALS)),,$(SIM_ENDLESS))
  SIM_APPS := $(filter-out %/selftest %/cost %/coop-cost %/wake $(SIM_REFUSED),$(APPS))
  override A := $(or $(filter %/$(A),$(APPS)),$(A:%/=%))
  ifneq ($(filter $(A),$(SIM_REFUSED)),)
    $(error A=$(notdir $(A)): its tasks do as much as they are let, so a recording says nothing of another policy; allowed are: $(notdir $(SIM_APPS)))
  endif
  ifneq ($(words $(A)) $(wildcard $(A)/Cargo.toml),1 $(A)/Cargo.toml)
    $(error A=$(A): no app there; $(call meant,$(notdir $(A)),$(notdir $(SIM_APPS)))allowed is one of: $(notdir $(SIM_APPS)))
  endif
  $(call one-of,ARCH,$(ARCHES))
  $(call each-of,FEATURES,$(POLICIES) $(SHARING))
  $(call scale,SCALE)
  ifneq ($(or $(filter-out $(shell seq 64),$(subst $(comma), ,$(CPUS))),$(filter 0,$(words $(CPUS))),$(filter-out 0 1,$(words $(CPUS)))$(findstring $(comma)$(comma),$(comma)$(CPUS)$(comma))),)
    $(error CPUS=$(CPUS): allowed are numbers from 1 to 64, with commas)
  endif
  ifneq ($(if $(SIM_ONE),$(findstring $(comma),$(CPUS))),)
    $(error CPUS=$(CPUS): make $(firstword $(SIM_ONE)) is of one number of CPUs; allowed is one from 1 to 64)
  endif
  $(call number,TIMEOUT)
  SIM_SHARING := $(sort $(filter $(SHARING),$(FEATURE_LIST)))
  ifneq ($(filter simulate,$(MAKECMDGOALS))$(MODELLED),)
    ifneq ($(word 2,$(SIM_SHARING)),)
      $(error FEATURES=$(FEATURES): CPUs share the work or do not; allowed is one of: $(SHARING))
    endif
    ifeq ($(SIM_SHARING)-$(filter-out 1,$(subst $(comma), ,$(CPUS))),unbalanced-)
      $(error FEATURES=$(FEATURES) CPUS=$(CPUS): one CPU has no other to share with; allowed is a list with 2 or more in it)
    endif
  endif
  ifeq ($(SIM_CHECK)-$(filter 1,$(subst $(comma), ,$(CPUS))),--check-)
    $(error LAB=--check CPUS=$(CPUS): QEMU has figures of one CPU; allowed is a list with 1 in it)
  endif
  ifneq ($(PROFILE),)
    $(profile-file)
  endif
endif

SIM_NAME = target/recordings/$(subst /,-,$(patsubst apps/%,%,$(A)))-$(ARCH)$(SCALED)
SIM_FILES = $(if $(PROFILE),$(call quoted,$(PROFILE)),$(SIM_NAME).pbg --cooperative $(SIM_NAME)-coop.pbg)
# Simulated are the policies of FEATURES, or all.
SIM_POLICIES = $(if $(POLICY),--policy '$(subst $(space),$(comma),$(POLICY))')
SIM_BALANCE = $(if $(filter unbalanced,$(SIM_SHARING)),--balance n)
# The same cells on QEMU, at as many phases of the tick.
SIM_MATRIX = $(SCHEDLAB) matrix --phases 8 $(strip --app $(notdir $(A)) --arch $(ARCH) \
    $(SIM_POLICIES) $(call given,SCALE,--scale) $(call given,TIMEOUT,--timeout))
# The files from which an image is made.
SIM_SOURCES = $(shell find $(A) apps/sched-tests/common apps/sched-tests/results modules -name '*.rs' -o -name Cargo.toml) \
    Cargo.toml Cargo.lock Makefile $(wildcard scripts/*)

# The policies of trace, with or without CPUS=.
SIM_TRACED = $(subst $(space),$(comma),$(strip $(TRACE_POLICIES)))
# The recordings, if they are needed and none is given.
SIM_MADE = $(if $(HELPED)$(PROFILE),,$(SIM_NAME).pbg $(SIM_NAME)-coop.pbg)
# The consoles of the boots that recorded; each has a replay, too.
SIM_CONSOLES = $(if $(PROFILE),,--console $(SIM_NAME).pbg.log --console $(SIM_NAME)-coop.pbg.log)

.PHONY: simulate advise plan
$(MODELLED): $(SIM_MADE)
	$(Q)$(SCHEDLAB) trace $(SIM_FILES) --app $(notdir $(A)) $(strip $(call given,ARCH,--arch) $(call given,SCALE,--scale) \
	    --cpus $(CPUS) --policy $(SIM_TRACED) $(SIM_BALANCE) $(call given,TICK_PHASE,--tick-phase) \
	    $(if $(call with-rows,$(A)),--metered)) --out target/trace $(LAB)

simulate: $(SIM_MADE)
	$(if $(SIM_CHECK),$(Q)$(SIM_MATRIX) >&2)
	$(Q)$(SCHEDLAB) simulate $(SIM_FILES) --app $(notdir $(A)) $(strip $(call given,ARCH,--arch) $(call given,SCALE,--scale) \
	    $(call given,CPUS,--cpus) $(SIM_POLICIES) $(SIM_BALANCE) \
	    $(if $(call with-rows,$(A)),--metered)) $(patsubst --check,--check target/lab$(SCALED),$(LAB))

advise: $(SIM_MADE)
	$(Q)$(SCHEDLAB) advise $(SIM_FILES) $(SIM_CONSOLES) --app $(notdir $(A)) $(strip $(call given,ARCH,--arch) $(call given,SCALE,--scale) \
	    $(call given,CPUS,--cpus) $(if $(call with-rows,$(A)),--metered)) $(LAB)

plan: $(SIM_MADE)
	$(Q)$(SCHEDLAB) plan $(SIM_FILES) --app $(notdir $(A)) $(strip $(call given,ARCH,--arch) $(call given,SCALE,--scale) \
	    $(call given,CPUS,--cpus) $(if $(call with-rows,$(A)),--metered)) $(LAB)

# Nothing else that this make was given; to a program without the helpers SCALE means nothing.
SIM_RUN = A=$(A) ARCH=$(ARCH) $(if $(call with-rows,$(A)),SCALE=$(SCALE)) TIMEOUT=$(TIMEOUT)
# $(call record,POLICY): one boot, whose console is kept
record = @mkdir -p $(@D) && echo 'make: recording $(notdir $(A)) under $(1): $@' >&2 && \
    { env -u MAKEFLAGS -u MAKEOVERRIDES -u TICK_PHASE -u T $(MAKE) --no-print-directory run $(SIM_RUN) FEATURES=$(1) \
        PROFILE_OUT=$@.new >$@.log 2>&1 || \
      { tail -n 20 $@.log >&2; exit 1; }; } && mv $@.new $@

ifneq ($(strip $(SIM_GOALS)),)
$(SIM_NAME).pbg: $(SIM_SOURCES)
	$(call record,sched_pbg)

$(SIM_NAME)-coop.pbg: $(SIM_SOURCES)
	$(call record,sched_pbg_coop)
endif
