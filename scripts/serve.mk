# An app that listens on a network, with a network card, and one port of it forwarded to the host.
# In:  A ARCH FEATURES SMP PORT TIMEOUT and the other variables of `make run`; up-to, quoted (words.mk);
#      LAB  options of tools/http-load; HELPED (lab.mk)
#      RUN (qemu.mk); HOST_CARGO HOST_RUSTC WHERE
# Out: QEMU_NIC   QEMU's words for the card and the port
#      SERVE      the command that boots it, or says in one line that the port is taken
#      CLIENTS    the same with clients on the host, whose verdict is the run's

ifneq ($(filter serve,$(MAKECMDGOALS)),)
  SERVE_OTHERS := $(filter build run record,$(MAKECMDGOALS))
  ifneq ($(SERVE_OTHERS),)
    $(error serve $(SERVE_OTHERS): an image boots with a network card or without, once; allowed is serve alone)
  endif
  $(call up-to,PORT,65535)
  # A counted clock stands still while the guest waits, and runs ahead of the host while it does
  # not: every timeout between the two would be wrong.
  ifeq ($(TIMING),icount)
    $(error TIMING=icount: a client of the host lives in real time; allowed is TIMING=real)
  endif
  # romfile=: the card's option ROM is for booting from a network.
  QEMU_NIC := -netdev user,id=net0,hostfwd=tcp:127.0.0.1:$(PORT)-:5555 -device virtio-net-pci,netdev=net0,romfile=
  SERVE = scripts/port-free.sh '$(PORT)' && $(RUN)
  HTTP_LOAD = RUSTC='$(HOST_RUSTC)' $(HOST_CARGO) build $(WHERE) --quiet --profile tool --package http-load
  CLIENTS = $(HTTP_LOAD) && $(if $(HELPED),target/tool/http-load --help,scripts/port-free.sh '$(PORT)' && \
      GUEST=$(call quoted,$(strip $(RUN))) scripts/http-test.sh '$(PORT)' $(LAB))
else ifneq ($(call is-given,PORT)$(MAKECMDGOALS),)
  $(if $(filter command,$(firstword $(origin PORT))),$(error PORT=$(PORT): of make serve; allowed is serve with it))
endif
