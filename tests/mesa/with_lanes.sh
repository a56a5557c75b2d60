#!/usr/bin/env bash
# A program on a lavapipe with larger subgroups.
#   with_lanes.sh LANES FOLDER COMMAND…     LANES: 8 to 64. FOLDER: what wide_lavapipe.sh filled. Exit code 77: it did not.
set -euo pipefail
icd=$(realpath -m "$2")/wide_lavapipe.json
[ -e "$icd" ] || { echo "skipped: $2 has no wide driver (wide_lavapipe.sh says why)" >&2; exit 77; }
exec env -u VK_DRIVER_FILES VK_ICD_FILENAMES="$icd" LP_NATIVE_VECTOR_WIDTH=$((32 * $1)) "${@:3}"
