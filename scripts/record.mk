# Records a program under any policy.
# In:  A ARCH FEATURES SMP SCALE TIMING and the other variables of `make run`
# Out: record    one boot, and its profile in PROFILE_OUT. PBG measures by itself; the layer of
#                modules/pbg-record/src/recorded.rs records any other policy
#      RECORDED  the feature that adds that layer, or nothing

RECORDED := $(if $(filter record,$(MAKECMDGOALS)),$(if $(filter $(PBG_POLICIES),$(POLICY)),,recorded))
REC_ALLOWED := A ARCH FEATURES SMP SCALE TIMING TICK_PHASE PROFILE_OUT LOG MODE MEM TIMEOUT ACCEL QEMU_ARGS

# The default of PROFILE_OUT.
RECORDING = target/recordings/$(APP)-$(ARCH)-$(POLICY_NAME)$(SCALED)$(addprefix -smp,$(filter-out 1,$(SMP)))$(TIMED)$(addprefix -,$(filter fifo,$(PBG_BASE))).pbg

ifneq ($(filter record,$(MAKECMDGOALS)),)
  # One make has one image, which records or does not.
  REC_OTHERS := $(filter build run,$(MAKECMDGOALS))
  ifneq ($(REC_OTHERS),)
    $(error record $(REC_OTHERS): record builds and boots an image of its own; allowed is record alone)
  endif
  $(call refuse,record,PROFILE BLK DISK,$(REC_ALLOWED),command environment override)
  ifneq ($(filter-out n,$(TRACE)),)
    $(error TRACE=$(TRACE): not of make record; allowed are $(REC_ALLOWED))
  endif
  # An empty PROFILE_OUT in the environment means that run saves no profile.
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
