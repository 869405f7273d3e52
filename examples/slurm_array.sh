#!/bin/bash
# One run directory, many processes: every task of the array is the same command, and claims clips that no other has.
#
#   sbatch --array=0-7 examples/slurm_array.sh /shared/videos /shared/runs/videos --set small
#
# Tasks may start late, be preempted and be requeued; the last one to end writes summary and page of all clips.
#SBATCH --job-name=revisit
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-task=1
#SBATCH --mem=64G
#SBATCH --time=02:00:00
#SBATCH --requeue
#SBATCH --output=revisit-%A_%a.log
set -euo pipefail

videos=$1 run=$2
shift 2
# Evidence that one task made is there for all: the cache lies beside the runs, unless you say where.
export REVISIT_CACHE=${REVISIT_CACHE:-$(dirname "$run")/cache}
echo "task ${SLURM_ARRAY_TASK_ID:-0} of job ${SLURM_ARRAY_JOB_ID:-none} on $(hostname)"
exec "${REVISIT:-revisit}" eval "$videos" --out "$run" --quiet "$@"
