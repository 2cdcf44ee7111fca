# The front door. Each target sets up what it needs; CMakePresets.json holds the builds and works without this file.

PRESET ?= release
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
quatrain := build/release/bin/quatrain

.PHONY: help setup demo test soak bench build program lint format

help:  ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: program  ## train a small Transformer and its quaternion and PHM twins, and compare them
	$(quatrain) compare agreement --twins real,quaternion,phm4

test: build  ## build everything and run every test, with a closing count
	@scripts/test $(PRESET)

soak: build  ## the long tests: runs killed at every moment, 100,000 steps; a quarter of an hour
	@scripts/soak $(PRESET)

bench: program  ## time layers, an encoder layer and a small model beside the real ones; two minutes
	$(quatrain) bench linear --algebra quaternion 'phm(4)' --sizes 512,1024 --batch 1,32,1024
	$(quatrain) bench encoder --algebra quaternion 'phm(4)'
	$(quatrain) bench model agreement --twins real,quaternion,phm4

lint: setup  ## check format and the rules that a script can check
	@scripts/lint

format: setup  ## format the C++ sources
	@scripts/lint --format

setup:  ## install what is missing (each target does so by itself)
	@scripts/setup

build: setup
	@cmake --preset $(PRESET) >build/configure.log || { cat build/configure.log; false; }
	@cmake --build --preset $(PRESET)

program: setup
	@cmake --preset release >build/configure.log || { cat build/configure.log; false; }
	@cmake --build --preset release --target quatrain_program
