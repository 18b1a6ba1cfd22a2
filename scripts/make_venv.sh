#!/usr/bin/env bash
# Creates a virtual environment from a lock, and installs this project into it if asked to.
#
#   make_venv.sh VENV LOCK [--with-project]
#
# PYTHON names the interpreter (default python3). Stamps inside the environment hold what it was
# made from: this folder and the lock, and pyproject.toml for the project. While they are equal
# nothing is done; when the lock or the folder differs, or a stamp is missing, it is made anew.
set -euo pipefail

venv=$1
lock=$2
with_project=${3:-}
python=${PYTHON:-python3}
lock_stamp=$venv/.made-from
project_stamp=$venv/.project-installed-from

fail() {
  printf 'error: %s\n' "$1" >&2
  exit 1
}

made_from() {
  pwd
  cat "$1"
}

# An interpreter that is named is the one to use; the default one may be any that the environment has.
has_named_interpreter() {
  [ "$python" = python3 ] ||
    [ "$("$python" -c 'import sys; print(sys.version, sys.base_prefix)' 2>&1)" = "$("$venv/bin/python" -c 'import sys; print(sys.version, sys.base_prefix)')" ]
}

check_python() {
  command -v "$python" >/dev/null 2>&1 ||
    fail "$python not found: install the Debian packages python3 and python3-venv"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" -V 2>&1) is too old, 3.11 is needed: install the Debian package python3 of Debian 12 or later, or name another interpreter by make PYTHON=..."
  "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
    fail "$python cannot create virtual environments: install the Debian package python3-venv"
}

install_lock() {
  check_python
  printf '==> creating %s with %s\n' "$venv" "$("$python" -V)"
  "$python" -m venv --clear "$venv"
  printf '==> installing %s packages from %s\n' "$(grep -c '==' "$lock")" "$lock"
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --require-hashes \
    --progress-bar off -r "$lock" |
    awk '/^(Collecting|Processing) / { n = split($2, path, "/"); print "    " path[n]; fflush() }
         /^Installing collected/ { print "==> unpacking"; fflush() }'
  made_from "$lock" >"$lock_stamp"
}

install_project() {
  printf '==> installing linkbound\n'
  # Built with the locked hatchling, so nothing outside the lock is fetched.
  "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --quiet \
    --no-deps --no-build-isolation -e .
  made_from pyproject.toml >"$project_stamp"
}

# The interpreter may have gone with an upgrade of the system: then the environment is dead.
{ cmp -s <(made_from "$lock") "$lock_stamp" && "$venv/bin/python" -c '' && has_named_interpreter; } ||
  install_lock
if [ "$with_project" = --with-project ]; then
  cmp -s <(made_from pyproject.toml) "$project_stamp" || install_project
fi
