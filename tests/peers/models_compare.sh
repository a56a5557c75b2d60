#!/usr/bin/env bash
# Compares our logits with those of transformers, model by model; exits 1 when one is off.
#   tests/peers/models_compare.sh PROGRAM_OR_BUILD_FOLDER OUT [TEXT]
# PROGRAM: auspex, or a build folder that holds it. OUT: the folder of make_models.py, with the references of
# reference_logits.py in it. TEXT: only models whose name contains it. Needs bash and python3 without packages.
set -euo pipefail
program=${1:?usage: models_compare.sh PROGRAM_OR_BUILD_FOLDER OUT [TEXT]}
models=${2:?usage: models_compare.sh PROGRAM_OR_BUILD_FOLDER OUT [TEXT]}
if [ -d "$program" ]; then
    program=$(find "$program" -type f -name auspex -perm -u+x | head -n 1)
fi
[ -x "$program" ] || { echo "models_compare.sh: found no program at $1, expected auspex; build it first" >&2; exit 2; }
compgen -G "$models/*.reference.json" >/dev/null || {
    echo "models_compare.sh: found no references in $models; run make_models.py and reference_logits.py first" >&2
    exit 2
}
exec python3 "$(dirname "$0")/models_compare.py" "$program" "$models" "${3:-}"
