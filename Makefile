# Ieum's front door. `make help` prints what there is.
#
#   SWIFT  another swift command, e.g. make test SWIFT=/opt/swift/usr/bin/swift
#   ARGS   more arguments for the program that run, demo or bench start, e.g. make run ARGS='--listen 127.0.0.1:0'
#   CI     when set, warnings are errors

SWIFT ?= swift
ARGS ?=
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# One set of flags for every debug build and one for every release build: another set would build it all again.
strict := $(if $(CI),-Xswiftc -warnings-as-errors)
debug := $(strict)
release := --configuration release --static-swift-stdlib $(strict)
bin := .build/release

.DEFAULT_GOAL := help
.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: build ## install, build and start a daemon with a PostgreSQL of its own
	@script/install-dependencies --run
	@echo "Starting ieumd. When it says 'listening', try in another terminal:"
	@echo "  $(bin)/ieum register --server 127.0.0.1:4386 --device laptop    make a player"
	@echo "  $(bin)/ieum help                                                push, pull, watch …"
	@echo "  $(bin)/ieumd psql                                               ask its database"
	@echo "Ctrl-C stops the daemon and its PostgreSQL; the games stay."
	@exec $(bin)/ieumd serve $(ARGS)

.PHONY: build
build: toolchain ## build the release binaries, .build/release/ieumd and .build/release/ieum
	@script/install-dependencies --build
	$(SWIFT) build $(release)

.PHONY: test
test: toolchain ## install, build and run every test, then documentation, image, quick start, demo and example
	@script/install-dependencies --build --run --test
	$(SWIFT) build --build-tests $(debug)
	$(SWIFT) test --skip-build --disable-xctest $(debug) | tee .build/test.log || script/show-failures .build/test.log
	script/record-play --check
	@SWIFT='$(SWIFT)' script/build-docs --check
	script/test-image
	script/check-settings
	script/test-quick-start
	script/demo .build/image/usr/local/bin
	@SWIFT='$(SWIFT)' script/test-example .build/image/usr/local/bin
	@grep -a 'Test run with' .build/test.log | tail -n 1

.PHONY: lint
lint: toolchain ## check formatting, scripts, SQL, compose file and links
	@script/install-dependencies --lint
	@SWIFT='$(SWIFT)' script/lint

.PHONY: demo
demo: build ## one player, two devices, one game of 한들, and a conflict
	@script/install-dependencies --run
	@script/demo $(ARGS)

.PHONY: tutorial
tutorial: build ## follow the client library's tutorial in an empty folder, and play its game
	@script/install-dependencies --run
	@SWIFT='$(SWIFT)' script/test-tutorial

.PHONY: bench bench-quick
bench: build ## measure pushes, pulls and notices against two yardsticks (.build/bench.json)
	@script/install-dependencies --run
	@$(bin)/ieum-bench $(ARGS)
bench-quick: build ## the same in under two minutes
	@script/install-dependencies --run
	@$(bin)/ieum-bench --quick $(ARGS)

.PHONY: hostile
hostile: build ## short sessions, crowds and floods against a daemon, and a healthy client beside them
	@script/install-dependencies --run
	@$(bin)/ieum-bench --only hostile --json .build/hostile.json $(ARGS)

.PHONY: sanitize
sanitize: toolchain ## every test with address, leak and undefined-behaviour sanitizers
	@script/install-dependencies --build --run --test
	@SWIFT='$(SWIFT)' script/sanitize $(ARGS)

SECONDS ?= 60
TARGETS ?=
.PHONY: fuzz
fuzz: toolchain ## look for bytes that break a parser, SECONDS=60 for each
	@script/install-dependencies --build
	@SWIFT='$(SWIFT)' script/fuzz $(SECONDS) $(TARGETS)

.PHONY: docs
docs: toolchain ## build the API documentation into .build/docs and check the links in Markdown files
	@script/install-dependencies --build
	@SWIFT='$(SWIFT)' script/build-docs
	@python3 script/check-links

.PHONY: clean
clean: ## remove everything that was built
	rm -rf .build

.PHONY: toolchain
toolchain:
	@script/check-swift-version $(SWIFT)
