# A line of ArceOS whose scheduler cannot be replaced: ax-task 0.8 (ARCEOS=0.8). It has policies of its own, and PBG
# as a guest.
# In:  ARCEOS and what kernel.mk and qemu.mk take
# Out: what kernel.mk and qemu.mk give, for that line

GUEST_APPS     := apps/sched-tests/batch apps/sched-tests/pipeline apps/sched-tests/realtime
# This program takes no policy, because it calls PBG by itself.
GUEST_LIMITS   := arceos-0.8/limits
GUEST_POLICIES := $(filter stock_%,$(POLICIES)) sched_pbg

guest-refuse = $(error $(1) ARCEOS=$(ARCEOS): not on this line; allowed $(2))
ifneq ($(filter-out $(GUEST_APPS) $(GUEST_LIMITS),$(A:%/=%)),)
  $(call guest-refuse,A=$(A),are $(notdir $(GUEST_APPS)) and $(GUEST_LIMITS))
endif
ifneq ($(filter $(GUEST_APPS),$(A:%/=%)),)
  ifneq ($(words $(filter $(GUEST_POLICIES),$(POLICY)))-$(words $(FEATURE_LIST)),1-1)
    $(call guest-refuse,FEATURES=$(FEATURES),is one of: $(GUEST_POLICIES))
  endif
else ifneq ($(FEATURE_LIST),)
  $(call guest-refuse,FEATURES=$(FEATURES) A=$(A),is no FEATURES)
endif
# $(call guest-only,NAME,VALUE)
guest-only = $(if $(filter-out $(2),$($(1))),$(call guest-refuse,$(1)=$($(1)),is $(1)=$(2)))
$(call guest-only,ARCH,riscv64)
$(call guest-only,SMP,1)
$(call guest-only,TRACE,n)
$(call guest-only,TICK_PHASE,0)
$(call guest-only,BLK,n)
$(call guest-only,MODE,release)

IMAGE_NAME := $(IMAGE_NAME)-arceos-$(ARCEOS)
IMAGE      := target/images/$(IMAGE_NAME)
KERNEL_DIR := $(CURDIR)/target/kernel/arceos-$(ARCEOS)-$(ARCH)
ifeq ($(origin PROFILE_OUT),file)
  PROFILE_OUT := $(PROFILE_OUT:.pbg=-arceos-$(ARCEOS).pbg)
endif

BUILD = $(CHECK_PROFILE) CARGO='$(CARGO)' RUSTC='$(RUSTC)' BUILD_STD='$(BUILD_STD)' LINKER='$(LINKER)' \
    OBJCOPY='$(OBJCOPY)' KERNEL_DIR='$(KERNEL_DIR)' IMAGE='$(IMAGE)' APP='$(APP)' \
    CARGO_FEATURES='$(BUILD_FEATURES)' SMP='$(SMP)' V='$(V)' AX_TARGET='$(TRIPLE_$(ARCH))' AX_LOG='$(LOG)' \
    SCHED_SCALE='$(SCALE)' SCHED_TIMING='$(TIMING)' PBG_BASE='$(PBG_BASE)' PBG_PROFILE='$(abspath $(PROFILE))' \
    scripts/build-0.8.sh

NEXT_run := $(subst make run,make run ARCEOS=$(ARCEOS),$(NEXT_run))
