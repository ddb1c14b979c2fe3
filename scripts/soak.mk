# Long runs of random programs: in the host's model, or booted.
# In:  model: T, a part of a test's name
#      booted: LAB, options of schedlab soak, such as --boots 10 and --minutes 5;
#              ARCH ARCEOS FEATURES SMP TIMING TIMEOUT, ARCH and FEATURES as lists with commas
#      SCHEDLAB given refuse cells NO_CELL (lab.mk); POLICIES (features.mk)
# Out: soak    a table; for a failed boot the guest's report, and its console in target/soak/

SOAK_POLICIES = $(filter sched_%,$(POLICIES))
SOAK_CELL := ARCH ARCEOS FEATURES SMP TIMING TIMEOUT
ifneq ($(filter soak,$(MAKECMDGOALS)),)
  ifeq ($(LAB),)
    SOAK_NOT := $(call set-of,A SCALE $(SOAK_CELL) $(NO_CELL),command)
    ifneq ($(SOAK_NOT),)
      $(error $(SOAK_NOT): not of make soak in the host's model; allowed are T, or LAB='--boots 1', which boots)
    endif
  else
    $(call refuse,soak,A T SCALE PROFILE_OUT $(NO_CELL),$(SOAK_CELL) LAB,command)
    $(call cells,$(SOAK_POLICIES))
  endif
endif

.PHONY: soak

ifeq ($(LAB),)
soak:
	$(Q)RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) test $(WHERE) --profile soak --package axsched-ext \
	    --test policies --test several_cpus --test starvation --test outsiders -- --ignored --nocapture \
	    $(call quoted,$(T))
	$(Q)RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) test $(WHERE) --release --package delegated --test model -- \
	    --ignored --nocapture $(call quoted,$(T))
else
soak:
	$(Q)$(SCHEDLAB) soak --arch '$(ARCH)' $(call given,FEATURES,--policy) --smp '$(SMP)' --timing '$(TIMING)' \
	    $(call given,TIMEOUT,--timeout) $(LAB_LINE) $(LAB)
endif
