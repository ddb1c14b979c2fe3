# How an app becomes a kernel image.
# In:  A ARCH FEATURES SMP LOG MODE MEM SCALE TIMING TRACE V BLK PBG_BASE PROFILE T;
#      POLICY UPSTREAM_LIST BALANCED (features.mk); RECORDED (record.mk);
#      WHERE; target/toolchain.mk
# Out: APP          the app's package name
#      PLAIN        not empty if it prints no result lines
#      IMAGE        the image, named after the variables without default values
#      PBG_TOOL     the command that reads profiles
#      BUILD        the command that makes it, or refuses the profile to build in

TRIPLE_x86_64    := x86_64-unknown-none
TRIPLE_riscv64   := riscv64gc-unknown-none-elf
TRIPLE_aarch64   := aarch64-unknown-none-softfloat
PLATFORM_x86_64  := x86-pc
PLATFORM_riscv64 := riscv64-qemu-virt
PLATFORM_aarch64 := aarch64-qemu-virt

# A program without sched-tests-common prints no result lines: its run fails on a panic or a hang.
PLAIN := $(filter-out $(call with-rows,$(A)),$(A))
APP := $(shell sed -n '/^\[package\]/,/^\[[^p]/s/^name *= *"\(.*\)".*/\1/p' $(A)/Cargo.toml)

# Each configuration of the platform has its own build folder, so that changing back and forth
# rebuilds nothing. It consists of the number of CPUs; on the PC the clock's rate, which the kernel
# does not measure; elsewhere the memory's size, which it does not ask for.
KERNEL_DIR := $(CURDIR)/target/kernel/$(ARCH)-smp$(SMP)$(if $(filter x86_64,$(ARCH)),$(if $(filter real,$(TIMING)),-tsc),$(addprefix -,$(filter-out 128M,$(MEM))))

# T is the case of the app selftest, and for yield the yields of each task.
CASE   := $(if $(filter %/selftest,$(A:%/=%)),$(T))
YIELDS := $(if $(filter %/yield,$(A:%/=%)),$(T))

IMAGE_KEY := $(APP) $(ARCH) $(POLICY) $(UPSTREAM_LIST) \
    $(TIMING:icount=) $(filter-out smp1,smp$(SMP)) $(MODE:release=) \
    $(filter-out log_warn,log_$(LOG)) $(filter-out 128M,$(MEM)) \
    $(filter-out scale1,scale$(SCALE)) $(filter blk,$(BLK:y=blk)) \
    $(patsubst fifo,under_fifo,$(filter fifo,$(PBG_BASE))) \
    $(if $(PROFILE),profile_$(firstword $(shell cksum <$(PROFILE)))) \
    $(addprefix selftest_,$(CASE)) $(addprefix yields_,$(YIELDS)) \
    $(patsubst y,trace,$(filter-out n,$(TRACE))) $(RECORDED) $(filter unbalanced,$(FEATURE_LIST)) \
    $(if $(filter 1,$(SMP)),$(BALANCED))
IMAGE_NAME := $(subst $(space),-,$(strip $(IMAGE_KEY)))
IMAGE := target/images/$(IMAGE_NAME)

# A policy is a feature of sched-tests-common. It is the app's own feature only if the app's manifest
# names it, which a program without sched-tests-common must do. The same holds for a disk.
MANIFEST_FEATURES := $(shell sed -n '/^\[features\]/,/^\[[^f]/s/^\([a-z0-9_]*\) *=.*/\1/p' $(A)/Cargo.toml)
APP_FEATURES := $(POLICY) $(RECORDED) $(if $(filter-out $(PLAIN),$(A))$(filter balanced,$(MANIFEST_FEATURES)),$(BALANCED)) $(if $(filter y,$(BLK)),disk) $(if $(filter y,$(TRACE)),trace) $(filter events,$(TRACE))
OWN_FEATURES := $(filter $(APP_FEATURES),$(MANIFEST_FEATURES))
ifneq ($(PLAIN),)
  # Only apps with the feature `disk` can have a disk.
  NO_USE := $(call set-of,SCALE TICK_PHASE TRACE $(if $(filter disk,$(MANIFEST_FEATURES)),,BLK) PBG_BASE PROFILE,$(ANYWHERE))
  ifneq ($(NO_USE),)
    $(error $(NO_USE): not of $(PLAIN), which does without sched-tests-common; allowed are A ARCH FEATURES SMP LOG MODE MEM TIMING)
  endif
  ifneq ($(filter-out $(OWN_FEATURES),$(POLICY)),)
    $(error FEATURES=$(FEATURES): $(PLAIN)/Cargo.toml has no feature $(POLICY); allowed are those that it has: $(MANIFEST_FEATURES))
  endif
endif
BUILD_FEATURES := $(strip $(OWN_FEATURES) $(addprefix axstd/,$(UPSTREAM_LIST)) \
    $(addprefix sched-tests-common/,$(filter-out $(OWN_FEATURES),$(APP_FEATURES))))

# A profile is checked before anything is built: now, or first thing if the tool for it has to be
# built.
PBG_TOOL = $(HOST_CARGO) run $(WHERE) --quiet --profile tool --package pbg-save --
ifneq ($(strip $(PROFILE)),)
  PROFILE_FOR := '$(PROFILE)' '$(APP)' '$(ARCH)' '$(SCALE)' '$(TIMING)'
  ifneq ($(filter build run record trace,$(MAKECMDGOALS)),)
    UNFIT := $(shell scripts/check-profile.sh $(PROFILE_FOR) 2>&1)
    ifneq ($(UNFIT),)
      $(error $(UNFIT))
    endif
  endif
  CHECK_PROFILE = PBG_TOOL='$(PBG_TOOL)' RUSTC='$(HOST_RUSTC)' scripts/check-profile.sh $(PROFILE_FOR) &&
endif

BUILD = $(CHECK_PROFILE) CARGO='$(CARGO)' WHERE='$(WHERE)' RUSTC='$(RUSTC)' BUILD_STD='$(BUILD_STD)' LINKER='$(LINKER)' \
    OBJCOPY='$(OBJCOPY)' AXCONFIG_GEN='$(AXCONFIG_GEN)' HOST_RUSTC='$(HOST_RUSTC)' \
    KERNEL_DIR='$(KERNEL_DIR)' IMAGE='$(IMAGE)' APP='$(APP)' CARGO_FEATURES='$(BUILD_FEATURES)' \
    SMP='$(SMP)' MEM='$(MEM)' V='$(V)' \
    AX_ARCH='$(ARCH)' AX_PLATFORM='$(PLATFORM_$(ARCH))' AX_TARGET='$(TRIPLE_$(ARCH))' \
    AX_MODE='$(MODE)' AX_LOG='$(LOG)' \
    SCHED_SCALE='$(SCALE)' SCHED_TIMING='$(TIMING)' SELFTEST='$(CASE)' SCHED_YIELDS='$(YIELDS)' \
    PBG_BASE='$(PBG_BASE)' PBG_PROFILE='$(abspath $(PROFILE))' \
    scripts/build.sh
