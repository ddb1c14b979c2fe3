# What make says in a folder below the project's: where to call it. Each of them has a link
# to this file as its Makefile.
# In:  the folder, and what was typed
# Out: one line, and a status
ROOT   := $(realpath $(dir $(realpath $(lastword $(MAKEFILE_LIST))))..)
FOLDER := $(patsubst $(ROOT)/%,%,$(CURDIR))
APP    := $(if $(wildcard src/main.rs),$(filter apps/%,$(FOLDER)))
$(error $(FOLDER): make works in the folder above; allowed is make -C $(ROOT) $(or $(MAKECMDGOALS),help)$(if $(MAKEOVERRIDES), $(MAKEOVERRIDES))$(if $(APP), A=$(APP)))
