# A program under any policy, recorded.
# In:  A ARCH FEATURES SMP SCALE TIMING and what else `make run` takes
# Out: record    one boot, and its profile in PROFILE_OUT; PBG measures by itself, around any
#                other policy is the layer of modules/pbg-record/src/recorded.rs
#      RECORDED  the feature that has the policy recorded, or nothing

RECORDED := $(if $(filter record,$(MAKECMDGOALS)),$(if $(filter $(PBG_POLICIES),$(POLICY)),,recorded))
REC_ALLOWED := A ARCH FEATURES SMP SCALE TIMING TICK_PHASE PROFILE_OUT LOG MODE MEM TIMEOUT ACCEL QEMU_ARGS

# Where it goes if nobody says.
RECORDING = target/recordings/$(APP)-$(ARCH)-$(POLICY_NAME)$(SCALED)$(addprefix -smp,$(filter-out 1,$(SMP)))$(TIMED)$(addprefix -,$(filter fifo,$(PBG_BASE))).pbg

ifneq ($(filter record,$(MAKECMDGOALS)),)
  # An image is recorded or not, and a make has one.
  REC_OTHERS := $(filter build run,$(MAKECMDGOALS))
  ifneq ($(REC_OTHERS),)
    $(error record $(REC_OTHERS): record builds and boots an image of its own; allowed is record alone)
  endif
  $(call refuse,record,PBG_PROFILE BLK DISK,$(REC_ALLOWED),command environment override)
  ifneq ($(filter-out n,$(TRACE)),)
    $(error TRACE=$(TRACE): not of make record; allowed are $(REC_ALLOWED))
  endif
  # Whoever wants no profile of run says so in the environment.
  ifeq ($(strip $(PROFILE_OUT)),)
    ifeq ($(origin PROFILE_OUT),command line)
      $(error PROFILE_OUT=: a recording goes somewhere; allowed is a file)
    endif
    override PROFILE_OUT = $(RECORDING)
  endif
  ifneq ($(filter-out $(call with-rows,$(A)),$(wildcard $(A))),)
    $(error A=$(A): does without sched-tests-common, which begins and ends a recording; allowed are: $(notdir $(LAB_APPS)))
  endif
  ifneq ($(filter %/selftest %/wake,$(A:%/=%)),)
    $(error A=$(A): it tests the instruments and has no tasks to record; allowed are: $(notdir $(LAB_APPS)))
  endif
  ifneq ($(and $(filter $(PBG_POLICIES),$(POLICY)),$(filter-out 1,$(SMP))),)
    $(error FEATURES=$(FEATURES) SMP=$(SMP): a recording under PBG is of one CPU (make run saves what several have measured); allowed are SMP=1 or another policy: $(filter-out $(PBG_POLICIES),$(POLICIES)))
  endif
endif

.PHONY: record
record: build
	$(Q)$(RUN)
