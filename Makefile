# SPDX-License-Identifier: GPL-2.0
#
# The front door: every job of the lab is one word.  `make help` lists them; the work is in virtme/.
#
# Kbuild reads the file Kbuild, never this one, so `make -C KDIR M=$PWD` works beside it.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# For messages, and for the scripts that measure time from when the command was typed.
export LOWTAIL_GOAL := $(firstword $(MAKECMDGOALS))
export LOWTAIL_T0 := $(shell date +%s)
export KVER UPDATE V KERNEL

SCENARIOS ?=
TESTS ?=
KERNELS ?=
STEPS ?=
SEED ?=
SEEDS ?=
IN_ROOT := virtme/enter.sh --
RELEASE = $$CARGO_TARGET_DIR/release

##@ The main jobs (each does all the set-up that it needs)

run: ## T0, T3, T4 and T2 on the stock kernel: stock against lowtail, as tables
	@virtme/setup.sh
	@$(MAKE) modules programs
	@$(MAKE) scenarios

test: ## every test: unit tests, lints, kselftests in a guest
	@virtme/setup.sh
	@$(MAKE) modules programs
	@virtme/test.sh

shell: ## a prompt in a guest with the stock kernel, both modules ready for modprobe
	@virtme/setup.sh
	@$(MAKE) modules programs
	@virtme/boot.sh

##@ Parts

setup: ## the Debian root, the stock kernel, its KDIR (KVER=7.2 another kernel, UPDATE=1 the newest)
	@virtme/setup.sh

modules: ## both .ko in out/kbuild/ (KDIR=… for a kernel tree of your own, built on this machine)
ifeq ($(KDIR),)
	@virtme/setup.sh
	@virtme/modules.sh
else
	@virtme/modules.sh "$(KDIR)"
endif

preflight: ## say what is missing to build for the kernel, and what mends it (KDIR=…)
ifeq ($(KDIR),)
	@virtme/setup.sh
	@LOWTAIL_OWN_KDIR=1 $(IN_ROOT) sh -c 'CC=$$KERNEL_CC virtme/preflight.sh "/lib/modules/$$KVER/build" "$$KVER"'
else
	@virtme/preflight.sh "$(KDIR)" $(KVER)
endif

programs: ## the load generator and the reporter, in out/cargo/release/
	@virtme/setup.sh
	@virtme/programs.sh

scenarios: ## the tables again (SCENARIOS="T0 T4", SEED=2 another boot), records in out/*.json
	@virtme/setup.sh
	@$(MAKE) modules programs
	@selftests/faults/build.sh
	@virtme/web.sh $(SCENARIOS)
	@$(IN_ROOT) env SEED="$(SEED)" virtme/vtime.sh $(SCENARIOS)
	@$(IN_ROOT) sh -c '$(RELEASE)/report out && $(RELEASE)/report --html out'

report: ## out/report.html and out/*.svg from the records in out/
	@virtme/setup.sh
	@$(MAKE) programs
	@$(IN_ROOT) sh -c '$(RELEASE)/report out >/dev/null && $(RELEASE)/report --html out'

report-test: ## the report in a real browser: widths, light and dark, screen reader, keyboard (makes a root with chromium once)
	@virtme/setup.sh
	@$(MAKE) programs
	@virtme/browser.sh

compare: ## what differs between the records of two runs (A=folder B=folder); virtme/compare.sh A B has a status too
	@virtme/compare.sh "$(A)" "$(B)"

apps: ## applications of Debian's: Tomcat, nginx, PostgreSQL by pasta and a splicing forwarder (T2), netperf streams (T3) and TCP_RR
	@$(MAKE) scenarios SCENARIOS="T0-web T2 T3 netperf-rr"

bench: ## every scenario: those of `make run`, T0-slow, T0-web, T1, windows, incast, the sweep and what both modules cost
	@$(MAKE) scenarios SCENARIOS="sweep sweep-many sweep-closed sweep-fq T4-loss T4 T4-cwnd trace T1 incast T2 T3 netperf-rr T0 T0-web T0-slow cost ack"

voids: ## the fault taken from each scenario in turn: its verdict has to be void, or failed (SCENARIOS="T0 T4")
	@virtme/setup.sh
	@$(MAKE) modules programs
	@selftests/faults/build.sh
	@virtme/web.sh $(or $(SCENARIOS),T0-web)
	@$(IN_ROOT) virtme/voids.sh $(SCENARIOS)

sweep: ## the four sweeps by several boots, as docs/pacing.md has them: out/sweep/table.md (SEEDS="1 2 3 4 5 6 7 8", some 8 min each)
	@virtme/setup.sh
	@$(MAKE) modules programs
	@$(IN_ROOT) virtme/sweep.sh $(SEEDS)

kselftest: ## the kselftests in a guest (TESTS="one two"; KERNEL=debug on a kernel with detectors, built once)
	@virtme/setup.sh
	@$(MAKE) modules programs
	@virtme/kselftest.sh $(TESTS)

matrix: ## every kernel we name (KERNELS="7.3-arm64 7.2-sid" some), every suite it can run: one table
	@virtme/matrix.sh $(KERNELS)

stress: ## the stress test in a guest: two rounds (SEED=…)
	@virtme/setup.sh
	@$(MAKE) modules programs
	@SEED="$(SEED)" virtme/stress.sh test

soak: ## the same, round after round with new seeds (MINUTES=10, SEED=…)
	@virtme/setup.sh
	@$(MAKE) modules programs
	@SEED="$(SEED)" virtme/stress.sh soak "$(or $(MINUTES),10)"

host-test: ## unit and property tests of the pure code, on the host
	@virtme/setup.sh
	@virtme/programs.sh
	@$(IN_ROOT) cargo test --locked --offline --manifest-path selftests/Cargo.toml

oracle: ## dctcp_floor's window against the kernel's own C (STEPS=10000000, SEED=…)
	@virtme/setup.sh
	@virtme/programs.sh
	@$(IN_ROOT) env STEPS="$(STEPS)" SEED="$(SEED)" \
		cargo run -q --locked --offline --manifest-path selftests/Cargo.toml -p oracle

fuzz: ## the fuzz targets of host-test, seed after seed (MINUTES=10, SEED=…)
	@virtme/setup.sh
	@virtme/programs.sh
	@$(IN_ROOT) env SEED="$(SEED)" MINUTES="$(or $(MINUTES),10)" virtme/fuzz.sh

lint: ## rustfmt, clippy, shellcheck, house rules
	@virtme/setup.sh
	@virtme/programs.sh
	@$(IN_ROOT) virtme/lint.sh

fmt: ## format all Rust as the lints want it
	@virtme/setup.sh
	@$(IN_ROOT) virtme/lint.sh --fix

##@ On a machine of your own

deb: ## lowtail-dkms and lowtail-tools, in out/deb/
	@virtme/setup.sh
	@virtme/programs.sh
	@$(IN_ROOT) virtme/deb.sh

test-deb: ## the packages on a Debian of their own: install, boot, upgrade the kernel, signatures, purge (some 15 min)
	@virtme/setup.sh
	@virtme/programs.sh
	@virtme/test-deb.sh

# DESTDIR= is for packagers.  Nothing is loaded: that is for the machine's owner to decide.

install: ## modules and settings (as comments) for KDIR=/lib/modules/$(uname -r)/build, after make modules
	@virtme/install.sh install "$(KDIR)" "$(DESTDIR)"

uninstall: ## the same, undone
	@virtme/install.sh uninstall "$(KDIR)" "$(DESTDIR)"

##@ Cleaning

clean: ## out/ and what a build in place left
	@virtme/clean.sh build

distclean: ## the cache too: root, kernel, KDIR, crates
	@virtme/clean.sh all

help: ## this list
	@awk -F ':.*## ' '/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "Set-up is kept in \$$LOWTAIL_CACHE (default ~/.cache/lowtail); DEBIAN_MIRROR=URL names a mirror."

.PHONY: run test shell setup modules preflight programs scenarios report report-test compare apps bench sweep voids kselftest matrix host-test oracle fuzz lint fmt deb test-deb stress soak \
	install uninstall clean distclean help
