# Sourced by measurements: what they run on.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)

# Builds the program and the named targets. HEARTH may name another program.
build() {
  if [ -n "${HEARTH:-}" ] && [ $# -eq 0 ]; then return; fi
  "$root/scripts/setup" --check > /dev/null || "$root/scripts/setup"
  (cd "$root" && cmake --preset release > /dev/null &&
    cmake --build --preset release --target hearth "$@" | tail -n 1) >&2
  HEARTH=${HEARTH:-$root/build/release/hearth}
}

# Sets $python to one that has torch and transformers: $HEARTH_PYTHON, or a virtual environment
# below the user's cache directory, made once (some GB, from the registry that pip is set up for).
find_python() {
  python=${HEARTH_PYTHON:-}
  if [ -n "$python" ]; then
    if ! "$python" -c 'import torch, transformers, safetensors, peft' 2> /dev/null; then
      echo "bench: $python (HEARTH_PYTHON) lacks torch, transformers, safetensors or peft" >&2
      exit 1
    fi
    return
  fi
  local venv=${XDG_CACHE_HOME:-$HOME/.cache}/hearth/bench-venv
  python=$venv/bin/python
  if ! [ -e "$venv/complete-2" ]; then
    if ! python3 -c 'import venv, ensurepip' 2> /dev/null; then
      echo "bench: python3 with its venv module is needed (Debian: python3-venv), or HEARTH_PYTHON" >&2
      exit 1
    fi
    echo "bench: installing torch, transformers and peft into $venv" >&2
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check \
      torch transformers safetensors peft numpy
    touch "$venv/complete-2"
  fi
}
