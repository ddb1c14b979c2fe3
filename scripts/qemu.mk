# How an image boots.
# In:  ARCH SMP MEM TIMING ACCEL QEMU_ARGS TIMEOUT BLK DISK PROFILE_OUT TICK_PHASE;
#      IMAGE IMAGE_NAME PBG_TOOL PLAIN (kernel.mk); QEMU_NIC (serve.mk)
# Out: RUN   the command that boots it and judges it

# -display none -serial stdio rather than -nographic: the latter makes the PC's
# firmware clear the terminal and switch off its line wrapping.
# -nic none: the boards' default network cards need option ROMs.
QEMU_x86_64  := qemu-system-x86_64 -machine q35 -cpu max
QEMU_riscv64 := qemu-system-riscv64 -machine virt -bios default
QEMU_aarch64 := qemu-system-aarch64 -machine virt -cpu cortex-a72
# KVM on aarch64 offers the host's own CPU only; elsewhere the host's is best.
ifeq ($(ACCEL),y)
  QEMU_ACCEL := -accel kvm -cpu host
endif
# sleep=off: an idle guest's clock jumps to the next timer instead of waiting
# for it, so that results do not depend on how busy the host is.
ifeq ($(TIMING),icount)
  QEMU_ACCEL := -icount shift=0,sleep=off
endif
# ArceOS asks the firmware to start each CPU and ignores the answer. If the host is late with one,
# the boot hangs or panics (7 of 630 with 4 CPUs). With one host thread the CPUs start in order.
ifeq ($(ARCH)-$(filter 1,$(SMP)),riscv64-)
  QEMU_ACCEL := -accel tcg,thread=single
endif

ifeq ($(BLK),y)
  QEMU_DISK := -drive id=disk0,if=none,format=raw,file=$(DISK) -device virtio-blk-pci,drive=disk0
  MAKE_DISK := scripts/disk.sh '$(DISK)' &&
endif

# The command to suggest for a saved profile, without its name. It replays the profile with the same
# variables or, for a recording in counted time, simulates it. Otherwise, and for a program that takes
# no profile from make, it shows the profile.
typed = $(strip $(foreach v,$(1),$(if $(call is-given,$(v)),$(v)=$(subst $(space),$(comma),$(strip $($(v)))))))
LOOK_AT_IT := look at it: make profile PROFILE=
NEXT_run    := $(if $(PLAIN),$(LOOK_AT_IT),replay it: make run $(call typed,A ARCH FEATURES SMP SCALE TIMING MODE MEM LOG) PROFILE=)
NEXT_record := $(if $(filter icount,$(TIMING)),play it under every policy: make simulate $(call typed,A ARCH SCALE) PROFILE=,$(LOOK_AT_IT))
RUN = $(MAKE_DISK) $(if $(PLAIN),PLAIN=y) PROFILE_OUT='$(PROFILE_OUT)' $(if $(filter record,$(MAKECMDGOALS)),RECORD=y) NEXT='$(or $(NEXT_$(filter record,$(MAKECMDGOALS))),$(NEXT_run))' TICK_PHASE='$(TICK_PHASE)' \
    PBG_SAVE='$(PBG_TOOL)' \
    RUSTC='$(HOST_RUSTC)' scripts/qemu-run.sh '$(IMAGE)' '$(TIMEOUT)' \
    $(QEMU_$(ARCH)) $(QEMU_ACCEL) -m $(MEM) -smp $(SMP) \
    -display none -serial stdio -monitor none $(or $(QEMU_NIC),-nic none) -no-reboot \
    -kernel $(IMAGE) $(QEMU_DISK) $(QEMU_ARGS)
