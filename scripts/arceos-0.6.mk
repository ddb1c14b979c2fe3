# Another line of ArceOS for the same programs: the one of 2026 (ARCEOS=0.6).
# In:  ARCEOS and what kernel.mk and qemu.mk take
# Out: what kernel.mk and qemu.mk give, for that line

# The old names have what these programs use, and no network.
ifneq ($(filter-out apps/sched-tests/% apps/coop/services,$(filter apps/coop/%,$(A:%/=%)) $(PLAIN:%/=%)),)
  $(error A=$(A) ARCEOS=$(ARCEOS): not on this line; allowed are those of apps/sched-tests, apps/coop/services and programs like them)
endif
ifeq ($(BLK),y)
  $(error BLK=y ARCEOS=$(ARCEOS): the file system has other calls on this line; allowed is BLK=n, where PROFILE builds a profile in)
endif
NEW_FEATURES := alloc ipi irq multitask paging rtc smp
ifneq ($(filter-out $(NEW_FEATURES),$(UPSTREAM_LIST)),)
  $(error FEATURES=$(FEATURES) ARCEOS=$(ARCEOS): not on this line: $(filter-out $(NEW_FEATURES),$(UPSTREAM_LIST)); allowed are $(NEW_FEATURES) and a policy)
endif
ifneq ($(filter debug,$(MODE)),)
  $(error MODE=debug ARCEOS=$(ARCEOS): this line links only with optimisation; allowed is MODE=release)
endif

IMAGE_NAME := $(IMAGE_NAME)-arceos-$(ARCEOS)
IMAGE      := target/images/$(IMAGE_NAME)
# The number of CPUs is in the code; memory and clock are asked for at the boot.
KERNEL_DIR := $(CURDIR)/target/kernel/arceos-$(ARCEOS)-$(ARCH)-smp$(SMP)
ifeq ($(origin PROFILE_OUT),file)
  PROFILE_OUT := $(PROFILE_OUT:.pbg=-arceos-$(ARCEOS).pbg)
endif

BUILD = $(CHECK_PROFILE) CARGO='$(CARGO)' RUSTC='$(RUSTC)' BUILD_STD='$(BUILD_STD)' LINKER='$(LINKER)' \
    OBJCOPY='$(OBJCOPY)' KERNEL_DIR='$(KERNEL_DIR)' IMAGE='$(IMAGE)' APP='$(APP)' \
    CARGO_FEATURES='$(BUILD_FEATURES)' SMP='$(SMP)' V='$(V)' AX_TARGET='$(TRIPLE_$(ARCH))' \
    AX_MODE='$(MODE)' AX_LOG='$(LOG)' \
    SCHED_SCALE='$(SCALE)' SCHED_TIMING='$(TIMING)' SELFTEST='$(CASE)' SCHED_YIELDS='$(YIELDS)' \
    PBG_BASE='$(PBG_BASE)' PBG_PROFILE='$(abspath $(PROFILE))' \
    scripts/build-0.6.sh

NEXT_run    := $(subst make run,make run ARCEOS=$(ARCEOS),$(NEXT_run))
NEXT_record := $(subst make simulate,make simulate ARCEOS=$(ARCEOS),$(NEXT_record))

# The PC boots by UEFI.
$(eval RUN_OLD = $(value RUN))
ifeq ($(ARCH),x86_64)
  QEMU_x86_64 += -bios target/uefi.fd
  RUN = scripts/uefi.sh target/uefi.fd && $(RUN_OLD)
endif
