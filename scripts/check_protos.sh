#!/usr/bin/env bash
# Lints the protos, checks their format, and holds them against the released contract.
#
# PYTHON is the interpreter of the generator's environment, BUF the buf command. Lint and breaking
# checks read a descriptor set, because buf cannot import google/rpc from an installed package.
set -euo pipefail

python=${PYTHON:?}
buf=${BUF:?}
config=protos/buf.yaml
released=protos/released.binpb

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$python" scripts/gen_protos.py descriptors "$scratch/new.binpb"

"$buf" lint "$scratch/new.binpb" --config "$config"
"$buf" format protos --diff --exit-code
if [ -f "$released" ]; then
  "$buf" breaking "$scratch/new.binpb" --against "$released" --config "$config"
  echo "protos are linted, formatted and compatible with the released contract"
else
  echo "protos are linted and formatted; nothing is released yet"
fi
