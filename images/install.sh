#!/bin/sh
# Installs the packages of the lock file; run by every Dockerfile here. It is mounted into the build,
# in `packages` beside the lock file and a site's wheels, and is not stored in any layer.
#
# A site's certificates and the address of its package index, which may contain a password, are
# secrets of the build, and are not stored in any layer either.
set -eu

if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi
if [ -s /run/secrets/pip ]; then export PIP_CONFIG_FILE=/run/secrets/pip; fi

cd "$(dirname "$0")"
exec pip install --no-cache-dir --progress-bar off --require-hashes \
    --find-links wheels -r requirements.txt
