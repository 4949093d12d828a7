#!/bin/sh
# What every Dockerfile here runs to install the packages of its lock file. It is mounted into the
# build, in `packages` beside the lock and a site's wheels, and is in no layer.
#
# A site's own certificates are a secret of the build, and so is the address of its package index,
# which may hold a password: they are in no layer either.
set -eu

if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi
if [ -s /run/secrets/pip ]; then export PIP_CONFIG_FILE=/run/secrets/pip; fi

cd "$(dirname "$0")"
exec pip install --no-cache-dir --progress-bar off --require-hashes \
    --find-links wheels -r requirements.txt
