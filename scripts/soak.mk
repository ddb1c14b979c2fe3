# Random programs for long: in the host's model, or booted.
# In:  MINUTES or BOOTS, or both: booted; else in the model
#      of the model: T
#      booted: ARCH FEATURES SMP TIMING TIMEOUT, ARCH and FEATURES maybe lists with commas
#              SEED     the first boot's, else at random
#              LAB      more options, as --bound 5; `make soak BOOTS=1 LAB=--help` lists them
#      SCHEDLAB given refuse ARCHES ANYWHERE NO_CELL (lab.mk); POLICIES (features.mk)
# Out: soak    a table; of a boot that failed the guest's report, and its console in target/soak/

BOOTS ?=
SEED  ?=

# Whoever gives one of these to another target means something else by it.
SOAK_OTHERS := $(firstword $(filter-out soak help target/%,$(MAKECMDGOALS)))
ifneq ($(SOAK_OTHERS),)
  $(foreach v,BOOTS SEED,$(if $(filter command,$(firstword $(origin $(v)))),$(error $(v)=$($(v)): not of make $(SOAK_OTHERS); allowed is make soak $(v)=$($(v)))))
endif

SOAK_POLICIES = $(filter sched_%,$(POLICIES))
IS_BOOTED := $(call is-given,MINUTES)$(call is-given,BOOTS)
SOAK_CELL := A ARCH FEATURES SMP TIMING TIMEOUT SCALE LAB SEED
ifneq ($(filter soak,$(MAKECMDGOALS)),)
  ifeq ($(IS_BOOTED),)
    SOAK_NOT := $(call set-of,$(SOAK_CELL) $(NO_CELL),command)
    ifneq ($(SOAK_NOT),)
      $(error $(SOAK_NOT): not of make soak in the host's model; allowed are T, or MINUTES=n or BOOTS=n, which boots)
    endif
  else
    $(call refuse,soak,A T SCALE PROFILE_OUT $(NO_CELL),MINUTES BOOTS SEED ARCH FEATURES SMP TIMING TIMEOUT LAB,command)
    $(if $(call is-given,MINUTES),$(call up-to,MINUTES,1000))
    $(if $(call is-given,BOOTS),$(call up-to,BOOTS,1000000))
    $(if $(call is-given,SEED),$(call up-to,SEED,4000000000))
    $(call list-of,ARCH,$(ARCHES))
    $(call list-of,FEATURES,$(SOAK_POLICIES))
    $(call one-of,SMP,1 2 3 4 5 6 7 8)
    $(call one-of,TIMING,icount real)
    $(call number,TIMEOUT)
    $(one-counter)
  endif
endif

.PHONY: soak

ifeq ($(IS_BOOTED),)
soak:
	$(Q)RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) test $(WHERE) --profile soak --package axsched-ext \
	    --test policies --test several_cpus --test starvation --test outsiders -- --ignored --nocapture \
	    $(call quoted,$(T))
else
soak:
	$(Q)$(SCHEDLAB) soak --arch '$(ARCH)' $(call given,FEATURES,--policy) --smp '$(SMP)' --timing '$(TIMING)' \
	    $(call given,MINUTES,--minutes) $(call given,BOOTS,--boots) $(call given,SEED,--seed) \
	    $(call given,TIMEOUT,--timeout) $(LAB)
endif
